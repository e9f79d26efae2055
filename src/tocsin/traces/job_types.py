"""The job types of a campaign: normal ones as in the paper (Table 1), and anomalies that operators meet."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tocsin.core.errors import InputError

__all__ = ["IDLE", "JOB_TYPES", "JobType", "job_types", "ranks"]

IDLE = "idle"
"""Also the label of a CPU without a job."""


@dataclass(frozen=True, slots=True)
class JobType:
    """What a labelled job does. Its label is its name."""

    label: str
    normal: bool
    cpus: int
    """CPUs of one simulated job."""
    share: int
    """How often it is simulated, relative to the others."""
    text: str


JOB_TYPES = {
    each.label: each
    for each in (
        JobType("fit", True, 4, 4, "likelihood fit: busy, with a short pause after each iteration"),
        JobType("good_io", True, 4, 3, "buffered writes, which the operating system flushes"),
        JobType("mpi_2", True, 2, 2, "2 ranks: random work, then Allreduce"),
        JobType("mpi_16", True, 16, 1, "16 ranks: random work, then Allreduce"),
        JobType(IDLE, True, 4, 3, "holds a CPU and does nothing"),
        JobType("bad_io", False, 4, 1, "unbuffered write, seek and flush"),
        JobType("memory_leak", False, 2, 1, "a fit whose memory grows"),
        JobType("cpu_hog", False, 2, 1, "a fit with a busy process beside it on the same CPU"),
        JobType("cache_thrashing", False, 2, 1, "a fit whose every memory access misses the caches"),
        JobType("metadata_storm", False, 2, 1, "creates, renames and removes small files"),
        JobType("throttling", False, 2, 1, "a fit that its CPU quota holds back"),
    )
}


def job_types(labels: Iterable[str]) -> list[JobType]:
    """The types with these labels, including MPI jobs of any size; an InputError names an unknown one."""
    found = []
    for label in labels:
        known = JOB_TYPES.get(label)
        if known is None and (count := ranks(label)):
            known = JobType(label, True, count, 1, f"{count} ranks: random work, then Allreduce")
        if known is None:
            raise InputError(
                f'"{label}" is not a job type; the types are {", ".join(JOB_TYPES)}, and mpi_N for N ranks'
            )
        found.append(known)
    return found


def ranks(label: str) -> int | None:
    """The number of ranks of an MPI job; None for other types."""
    found = re.fullmatch(r"mpi_([1-9]\d{0,3})", label)
    return int(found[1]) if found else None
