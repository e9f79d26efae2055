"""A breach: one rule that one job breaks, before it becomes a finding and an advice."""

from collections.abc import Sequence
from dataclasses import dataclass

from tocsin.core.verdict import Level

__all__ = ["Breach", "Change", "Thresholds", "hopeless"]

Change = tuple[str, int | str]
"""A field of the request and the value that would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    row: int
    kind: str
    level: Level
    text: str
    evidence: tuple[str, ...] = ()
    partition: str | None = None
    """The partition that cannot take the job; None where it does not depend on the partition."""
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the rules count by; saved with the detector."""

    completed: int = 3
    """Completed jobs of a kind from which on they say something."""
    sure: int = 10
    """Completed jobs from which on a time limit below all of them is critical."""
    memory_share: float = 0.5
    """A request below this share of the largest peak is far below it."""
    margin: float = 1.2
    """What is advised is so many times the largest of what was used."""


def hopeless(breaches: Sequence[Breach], partitions: Sequence[str]) -> list[Breach]:
    """The breaches of one job that hold whichever of its partitions it would run in.

    It is lost only if every partition refuses it; where one merely keeps it waiting, only what keeps it waiting is said.
    """
    general = [breach for breach in breaches if breach.partition is None]
    local = [breach for breach in breaches if breach.partition is not None]
    refusing = {breach.partition for breach in local if breach.level is Level.CRITICAL}
    if refusing.issuperset(partitions):
        return general + local
    if {breach.partition for breach in local}.issuperset(partitions):
        return general + [breach for breach in local if breach.partition not in refusing]
    return general
