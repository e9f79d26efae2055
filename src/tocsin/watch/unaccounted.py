"""Jobs that left the queue and are not in accounting yet: how far back accounting must be read for them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["GIVE_UP", "Unaccounted"]

GIVE_UP = 86400
"""Seconds after which accounting is no longer expected: the outcome is then `unknown`."""


@dataclass(frozen=True, slots=True)
class _Missing:
    floor: int
    """The job was alive at this instant, or ended later."""
    since: int


class Unaccounted:
    """Kept in memory only: a restart rebuilds it from the store and the queue."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Missing] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, jobs: Mapping[str, int], now: int) -> None:
        """Add jobs by key, each with an instant at which it was still alive."""
        for job, floor in jobs.items():
            self._jobs.setdefault(job, _Missing(floor, now))

    def remove(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self._jobs.pop(job, None)

    def floor(self, now: int) -> int:
        """The instant before which every job is accounted for."""
        return min([now, *(left.floor for left in self._jobs.values())])

    def given_up(self, now: int) -> list[str]:
        return [job for job, left in self._jobs.items() if now - left.since > GIVE_UP]
