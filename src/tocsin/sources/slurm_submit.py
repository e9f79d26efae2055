"""Submits jobs to Slurm, follows and cancels them, by its commands."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tocsin.core.errors import ClusterError
from tocsin.sources.commands import run, slurm_env

__all__ = ["FORGOTTEN", "SubmittedJob", "cancel", "exit_code", "follow", "forgotten", "submit"]

FORGOTTEN = "FORGOTTEN"
"""The state of a job that slurmctld no longer knows; Slurm has no state of that name."""

_TIMEOUT = 60.0
_ACTIVE = frozenset({"PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "RESIZING", "REQUEUED"})
_FORMAT = "%A|%T|%N|%V|%S|%e"


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job as squeue shows it; instants are UTC epoch seconds."""

    job: str
    state: str
    node: str
    submit: int | None
    start: int | None
    end: int | None

    @property
    def ended(self) -> bool:
        return self.state not in _ACTIVE


def submit(script: Path, arguments: Sequence[str], options: Sequence[str], *, slurm_conf: str = "") -> str:
    """The raw id of the new job."""
    argv = ["sbatch", "--parsable", *options, str(script), *arguments]
    answer = run(argv, timeout=_TIMEOUT, env=slurm_env(slurm_conf)).decode("utf-8", "replace").strip()
    job = answer.partition(";")[0]
    if not job.isdecimal():
        raise ClusterError(f"sbatch printed {answer[:80]!r}, not the id of a job")
    return job


def follow(jobs: Iterable[str], *, slurm_conf: str = "") -> dict[str, SubmittedJob]:
    """The current state of these jobs in slurmctld, without those that it has forgotten."""
    wanted = set(jobs)
    # Without -j: squeue fails as a whole if it has forgotten one of them.
    argv = ["squeue", "-h", "-t", "all", "-o", _FORMAT]
    output = run(argv, timeout=_TIMEOUT, env=slurm_env(slurm_conf))
    found = {}
    for line in output.decode("utf-8", "replace").splitlines():
        job, *rest = line.split("|")
        if job in wanted and len(rest) == 5:
            found[job] = SubmittedJob(job, rest[0], rest[1], *map(_instant, rest[2:]))
    return found


def forgotten(job: str) -> SubmittedJob:
    """A job that slurmctld no longer knows: it ended more than MinJobAge ago."""
    return SubmittedJob(job, FORGOTTEN, "", None, None, None)


def exit_code(job: str) -> str | None:
    """`3:0`: exit code and signal; None if slurmctld has forgotten the job."""
    with suppress(ClusterError):
        text = run(["scontrol", "show", "job", job], timeout=_TIMEOUT).decode("utf-8", "replace")
        if found := re.search(r"\bExitCode=(\d+:\d+)", text):
            return found[1]
    return None


def cancel(jobs: Sequence[str]) -> None:
    """Cancel these jobs, and no others."""
    if jobs:
        run(["scancel", *jobs], timeout=_TIMEOUT)


def _instant(text: str) -> int | None:
    return int(text) if text.isdecimal() else None
