"""Faults of the demo's machine: file system outages, and nodes that fail for days."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

__all__ = ["BadNode", "Outage", "bad_nodes", "outages"]

HOUR = 3600
DAY = 24 * HOUR


class Outage(NamedTuple):
    """The file system is unavailable; once noticed, operators stop new starts and requeue jobs that allow it."""

    begins: int
    noticed: int
    ends: int


class Fault(NamedTuple):
    """The node is down for 0 seconds if only its disk gave errors."""

    at: int
    down: int


class BadNode(NamedTuple):
    """A bad node that is still in use; between its faults it works normally."""

    node: str
    faults: tuple[Fault, ...]


def outages(start: int, rng: Random) -> Iterator[Outage]:
    """One outage in the first week, then about one in three weeks, on working days."""
    day = rng.randint(2, 4)
    while True:
        while (start // DAY + day + 3) % 7 > 4:  # Saturday or Sunday; day 0 of the epoch was a Thursday
            day += 1
        begins = start + day * DAY + rng.randint(9 * HOUR, 15 * HOUR)
        noticed = begins + rng.randint(HOUR // 4, HOUR // 2)
        yield Outage(begins, noticed, noticed + rng.randint(HOUR, 3 * HOUR))
        day += rng.randint(16, 24)


def bad_nodes(start: int, names: Sequence[str], rng: Random) -> Iterator[BadNode]:
    """Nodes that fail for two to four days, one after another."""
    at = start + rng.randint(DAY, 3 * DAY)
    while True:
        until = at + rng.randint(2 * DAY, 4 * DAY)
        faults = []
        while at < until:
            at += round(rng.expovariate(1 / (2.5 * HOUR))) + 60
            down = rng.randint(HOUR // 2, 2 * HOUR) if rng.random() < 0.4 else 0
            faults.append(Fault(at, down))
            at += down
        yield BadNode(rng.choice(names), tuple(faults))
        at += rng.randint(5 * DAY, 12 * DAY)
