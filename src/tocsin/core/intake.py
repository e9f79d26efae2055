"""How jobs flow in from any source: batches of good rows, and a count of the bad ones by reason."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Batch", "JobSource", "Rejects"]

FIRST_LINES = 5


@dataclass(slots=True)
class Rejects:
    """Bad records by reason, with the first line numbers (or record numbers) of each."""

    counts: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    """What was wrong in the first record of a reason, such as `Start "tomorrow"`, where that can be shown."""

    def add(self, reason: str, lines: Iterable[int], example: str | None = None) -> None:
        found = list(lines)
        if found:
            if example and reason not in self.counts:
                self.examples[reason] = example
            self.counts[reason] = self.counts.get(reason, 0) + len(found)
            first = self.lines.setdefault(reason, [])
            first.extend(sorted(found)[: FIRST_LINES - len(first)])

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs that conform to the frames' schema, to be stored in one transaction."""

    jobs: "pl.DataFrame"
    read: int
    """Records that this batch was made of, bad ones included; steps are not records."""
    position: int
    """Once this batch is stored, an interrupted import goes on from here (records of a file, or an instant)."""
    done: int = 0
    """Bytes (or seconds) read so far, for a progress bar."""


class JobSource(Protocol):
    """Anything that jobs can be imported from."""

    identity: str
    """The same text whenever the same thing is read again, so that an interrupted import is recognised."""
    total: int | None
    """Bytes (or seconds) to read in all, where that is known."""
    rejects: Rejects
    notes: list[str]
    """Sentences for a person: what was assumed, warned of, or left out."""

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        """The batches after `resume`, the position of the last one stored (0: from the start)."""
        ...
