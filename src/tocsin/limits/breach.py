"""A breach: one rule that one job breaks, before it becomes a finding and advice."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tocsin.core.units import format_memory
from tocsin.core.verdict import Level

__all__ = ["MEGABYTE", "Breach", "Change", "Thresholds", "one_of", "plural", "size", "unavoidable"]

MEGABYTE = 2**20

Change = tuple[str, int | str]
"""A field of the request and a value that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    row: int
    kind: str
    level: Level = Level.CRITICAL
    text: str
    """What is wrong."""
    remedy: str = ""
    """What to do about it."""
    evidence: tuple[str, ...] = ()
    partition: str | None = None
    """The partition that cannot take the job; None if it does not depend on the partition."""
    change: Change | None = None
    variable: str = ""
    """The environment variable that the text names already."""

    @classmethod
    def here(
        cls,
        row: Mapping[str, Any],
        kind: str,
        text: str,
        remedy: str,
        change: Change | None = None,
        **more: Any,
    ) -> "Breach":
        """For a job in one of its partitions: a row of `demands`."""
        place = {"row": row["row"], "partition": row["partition"]}
        return cls(kind=kind, text=text, remedy=remedy, change=change, **place, **more)

    @property
    def sentence(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Numbers that the rules use; saved with the detector."""

    completed: int = 3
    """Completed similar jobs needed before they count as evidence."""
    sure: int = 10
    """Completed jobs needed before a time limit below all of them is critical, or a warning if only the name is the same."""
    time_share: float = 0.75
    """A time limit below this share of the shortest run is a warning if only the name is the same."""
    memory_share: float = 0.5
    """A request below this share of the largest peak is a warning."""
    margin: float = 1.2
    """Ratio of the advised value to the largest value used."""


def unavoidable(
    breaches: Sequence[Breach], partitions: Sequence[str], everywhere: Collection[str] = ()
) -> list[Breach]:
    """The breaches of one job that remain whichever of its partitions it runs in.

    It cannot run only if every partition refuses it. If some only make it wait, only the reasons for waiting remain.
    Limits of the kinds in `everywhere` have to be kept in every partition.
    """
    strict = [b for b in breaches if b.kind in everywhere and b.level is Level.CRITICAL]
    general = [breach for breach in breaches if breach.partition is None or breach in strict]
    local = [breach for breach in breaches if breach.partition is not None and breach not in strict]
    refusing = {breach.partition for breach in local if breach.level is Level.CRITICAL}
    if refusing.issuperset(partitions):
        return general + local
    if {breach.partition for breach in local}.issuperset(partitions):
        return general + [breach for breach in local if breach.partition not in refusing]
    return general


def one_of(names: Sequence[str]) -> str:
    """The names to choose from, as the end of "use"."""
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def plural(number: float, what: str) -> str:
    return f"{int(number):,} {what}{'' if number == 1 else 's'}"


def size(amount: float) -> str:
    """Memory in whole megabytes, as Slurm counts."""
    return format_memory(-(-int(amount) // MEGABYTE) * MEGABYTE)
