"""Jobs that left the queue and whose end is not known yet: how far back accounting must be asked for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["GIVE_UP", "Absent"]

GIVE_UP = 86400
"""Seconds after which nobody will tell any more: the outcome is then `unknown`."""


@dataclass(frozen=True, slots=True)
class _Missed:
    floor: int
    """It lived at this instant or ended later."""
    since: int


class Absent:
    """Kept in memory only: after a restart it is made anew from the store and the queue."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Missed] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, jobs: Mapping[str, int], now: int) -> None:
        """Missed by key, each with an instant at which it still lived."""
        for job, floor in jobs.items():
            self._jobs.setdefault(job, _Missed(floor, now))

    def remove(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self._jobs.pop(job, None)

    def floor(self, now: int) -> int:
        """All before this instant is settled."""
        return min([now, *(missed.floor for missed in self._jobs.values())])

    def given_up(self, now: int) -> list[str]:
        return [job for job, missed in self._jobs.items() if now - missed.since > GIVE_UP]
