"""The import contract: sources yield batches of jobs and count rejected records by reason."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Batch", "JobSource", "Rejects", "valid_batches", "valid_jobs"]

FIRST_LINES = 5


@dataclass(slots=True)
class Rejects:
    """Rejected records by reason, with the first line (or record) numbers of each."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    """The invalid value in the first record of a reason, such as `Start "tomorrow"`."""

    def add(
        self, reason: str, lines: Iterable[int], example: str | None = None, *, number: int | None = None
    ) -> None:
        """Count rejected records; `number` if `lines` has only the first of them, or none."""
        found = list(lines)
        if found or number:
            if example and reason not in self.counts:
                self.examples[reason] = example
            self.counts[reason] = self.counts.get(reason, 0) + (number or len(found))
            first = self.lines.setdefault(reason, [])
            first.extend(sorted(found)[: FIRST_LINES - len(first)])

    def include(self, other: "Rejects") -> None:
        """Add the counts of another source."""
        for reason, number in other.counts.items():
            self.counts[reason] = self.counts.get(reason, 0) + number
            self.lines.setdefault(reason, []).extend(other.lines.get(reason, []))
        self.examples = {**other.examples, **self.examples}

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs in the schema of `core.frames`, to be stored in one transaction.

    The records read by all batches are the jobs in them plus the rejects, so that totals add up.
    """

    jobs: "pl.DataFrame"
    read: int
    """Records read for this batch, including rejected ones; steps are not records."""
    position: int
    """Where an interrupted import resumes once this batch is stored (records of a file, or an instant)."""
    done: int = 0
    """Bytes (or seconds) read so far, for a progress bar."""
    lines: Sequence[int] | None = None
    """The line (or record) number of each job, if the source has them."""


class JobSource(Protocol):
    """Anything that jobs can be imported from."""

    identity: str
    """The same text whenever the same data is read again, so that an interrupted import is recognised."""
    total: int | None
    """Total bytes (or seconds) to read, if known."""
    rejects: Rejects
    notes: list[str]
    """Sentences for people: assumptions, warnings and omissions."""

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        """The batches after `resume`, the position of the last one stored (0: from the start)."""
        ...


def valid_batches(source: JobSource, resume: int = 0) -> Iterator[Batch]:
    """The batches of any source without invalid jobs, which are counted in its rejects."""
    with closing(source.batches(resume)) as batches:  # type: ignore[type-var]  # every source is a generator
        for batch in batches:
            yield replace(batch, jobs=valid_jobs(batch.jobs, source.rejects, batch.lines), lines=None)


def valid_jobs(jobs: "pl.DataFrame", rejects: Rejects, lines: Sequence[int] | None = None) -> "pl.DataFrame":
    """Reject jobs that could not be stored or shown, such as those with times beyond the year 9999.

    `lines`: where each job was read.
    """
    from tocsin.core.frames import invalid_reason

    reason = invalid_reason(jobs)
    if reason.null_count() == len(reason):
        return jobs
    numbered = jobs.select("job_id", reason).with_row_index("row").drop_nulls("reason")
    for text, group in numbered.group_by("reason", maintain_order=True):
        places = [lines[row] for row in group["row"]] if lines is not None else []
        rejects.add(str(text[0]), places, f"job {group['job_id'][0]}", number=group.height)
    return jobs.filter(reason.is_null())
