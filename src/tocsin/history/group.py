"""Counters of the jobs that share a key, updated event by event."""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from math import nan
from typing import Any

from tocsin.core.units import UNLIMITED
from tocsin.history import recipe

__all__ = ["CODES", "Group", "Release", "statistics"]

CODES = {str(outcome): number for outcome, number in recipe.CLASSES.items()}
_HOUR, _DAY = 3600, 86400
_LONG = 2**38
_SPARE = 64  # instants outside every window are dropped in batches of this size


class Release:
    """A newly known outcome, as groups count it."""

    __slots__ = ("code", "elapsed", "known", "memory", "memory_used", "started", "time_used")

    def __init__(self, row: dict[str, Any]) -> None:
        self.code = CODES[row["outcome"]]
        self.known = row["known_at"]
        self.started = row["start"] is not None
        self.elapsed = None if row["elapsed"] is None else min(row["elapsed"], _LONG - 1)
        self.memory = None if row["max_memory"] is None else min(row["max_memory"] >> 10, _LONG - 1)
        self.time_used = _ratio(self.elapsed, row["time_limit"])
        self.memory_used = _ratio(row["max_memory"], row["req_memory"])


def _ratio(used: int | None, requested: int | None) -> int | None:
    """Used over requested in 1/1024, at most 64."""
    if used is None or used < 0 or not requested or requested < 0 or requested >= UNLIMITED:
        return None
    whole, rest = divmod(used, requested)
    return min(min(whole, 64) * 1024 + int(rest * 1024 / requested), 64 * 1024)


class Group:
    """Counters of one group; reading them changes nothing."""

    __slots__ = (
        "completed",
        "counts",
        "elapsed_last",
        "elapsed_least",
        "elapsed_most",
        "elapsed_unsuccessful",
        "ended",
        "failed",
        "failed_before",
        "known",
        "last_completed",
        "last_known",
        "last_submit",
        "last_unsuccessful",
        "memory_most",
        "memory_used",
        "recent",
        "released",
        "released_started",
        "started",
        "streak",
        "submits",
        "submitted",
        "time_used",
        "unsuccessful",
        "unsuccessful_before",
    )

    def __init__(self) -> None:
        self.ended = self.completed = self.released = self.released_started = self.started = (
            self.submitted
        ) = 0
        self.failed = self.unsuccessful = self.streak = self.last_known = 0
        self.counts: dict[int, int] = {}
        self.recent = bytearray()
        self.submits = array("q")
        """Instants of the submissions of the last day."""
        self.known = array("q")
        """Instants at which the outcomes of the last week became known, and how many were bad before each."""
        self.failed_before = array("q")
        self.unsuccessful_before = array("q")
        self.time_used: tuple[int, ...] = ()
        self.memory_used: tuple[int, ...] = ()
        self.elapsed_last = self.elapsed_least = self.elapsed_most = self.memory_most = nan
        self.elapsed_unsuccessful: float = nan
        self.last_submit: int | None = None
        self.last_unsuccessful: int | None = None
        self.last_completed: int | None = None

    def submission(self, at: int) -> None:
        self.submitted += 1
        self.last_submit = at
        insort(self.submits, at)  # one that is reported late still counts from its own instant on
        stale = bisect_left(self.submits, at - _DAY)
        if stale > _SPARE:
            del self.submits[:stale]

    def release(self, release: Release) -> None:
        self.released += 1
        self.released_started += release.started
        code = release.code
        if code not in recipe.COUNTED:
            return
        self._in_week(release.known)
        self.ended += 1
        self.counts[code] = self.counts.get(code, 0) + 1
        self.recent.append(code)
        del self.recent[: -recipe.LAST[-1]]
        self.last_known = release.known
        self.failed += code in recipe.FAILED
        if code in recipe.UNSUCCESSFUL:
            self.unsuccessful += 1
            self.streak = max(self.streak, 0) + 1
            self.last_unsuccessful = release.known
            if release.elapsed is not None:
                self.elapsed_unsuccessful = release.elapsed
        else:
            self.streak = min(self.streak, 0) - 1
        if release.time_used is not None:
            self.time_used = (*self.time_used, release.time_used)[-recipe.RECENT :]
        if code == recipe.COMPLETED:
            self._complete(release)
        self.use(release)

    def use(self, release: Release) -> None:
        """Count peak memory: with the outcome, or later if accounting reports it after the queue showed the outcome."""
        if release.code not in recipe.COUNTED:
            return
        if release.memory_used is not None:
            self.memory_used = (*self.memory_used, release.memory_used)[-recipe.RECENT :]
        if release.code == recipe.COMPLETED and release.memory is not None:
            memory = release.memory * 1024
            # nan is neither above nor below anything
            self.memory_most = memory if not self.memory_most >= memory else self.memory_most

    def _in_week(self, known: int) -> None:
        if self.known and known < self.known[-1]:
            known = self.known[-1]  # reported late: it counts from now on
        self.known.append(known)
        self.failed_before.append(self.failed)
        self.unsuccessful_before.append(self.unsuccessful)
        stale = bisect_right(self.known, known - recipe.WEEK)
        if stale > _SPARE:
            for values in (self.known, self.failed_before, self.unsuccessful_before):
                del values[:stale]

    def _complete(self, release: Release) -> None:
        self.completed += 1
        self.last_completed = release.known
        if release.elapsed is not None:
            self.elapsed_last = release.elapsed
            # nan is neither above nor below anything
            self.elapsed_least = (
                release.elapsed if not self.elapsed_least <= release.elapsed else self.elapsed_least
            )
            self.elapsed_most = (
                release.elapsed if not self.elapsed_most >= release.elapsed else self.elapsed_most
            )

    def copy(self) -> "Group":
        copied = object.__new__(Group)
        for name in Group.__slots__:
            value = getattr(self, name)
            if isinstance(value, array | bytearray):
                value = value[:]
            elif isinstance(value, dict):
                value = value.copy()
            setattr(copied, name, value)
        return copied

    def to_json(self) -> list[Any]:
        """Everything as plain values, in the order of the slots."""
        return [_plain(getattr(self, name)) for name in Group.__slots__]

    @classmethod
    def from_json(cls, values: list[Any]) -> "Group":
        group = cls()
        for name, value in zip(cls.__slots__, values, strict=True):
            setattr(group, name, _FROM_JSON[name](value) if name in _FROM_JSON else value)
        return group


def _instants(values: list[int]) -> "array[int]":
    return array("q", values)


_FROM_JSON: dict[str, Callable[[Any], Any]] = {
    "counts": dict,
    "recent": bytearray,
    "time_used": tuple,
    "memory_used": tuple,
    **dict.fromkeys(("submits", "known", "failed_before", "unsuccessful_before"), _instants),
    **dict.fromkeys(
        ("elapsed_last", "elapsed_least", "elapsed_most", "elapsed_unsuccessful", "memory_most"),
        lambda value: nan if value is None else value,
    ),
}


def _plain(value: Any) -> Any:
    """As in JSON, which has no nan."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, bytearray | array | tuple):
        return list(value)
    return None if value != value else value


# For each code, whether it is one of these, in the form that `bytearray.translate` takes.
_FAILED = bytes(code in recipe.FAILED for code in range(256))
_UNSUCCESSFUL = bytes(code in recipe.UNSUCCESSFUL for code in range(256))


def statistics(group: Group, at: int) -> Iterator[float]:
    """The statistics in the recipe's order."""
    ended, first = group.ended, bisect_right(group.known, at - recipe.WEEK)
    week = len(group.known) - first
    yield ended
    yield week
    for total, before, bad in (
        (group.failed, group.failed_before, _FAILED),
        (group.unsuccessful, group.unsuccessful_before, _UNSUCCESSFUL),
    ):
        yield _share(total, ended)
        flags = group.recent.translate(bad)
        for number in recipe.LAST:
            yield _share(flags.count(1, -number), min(number, len(flags)))
        yield _share(total - before[first], week) if week else nan
    for classes in (recipe.TIMEOUT, recipe.OUT_OF_MEMORY, recipe.NODE):
        yield _share(sum(number for code, number in group.counts.items() if code in classes), ended)
    yield group.recent[-1] if ended else nan
    yield group.streak
    yield at - group.last_known if ended else nan
    yield nan if group.last_unsuccessful is None else at - group.last_unsuccessful
    yield nan if group.last_completed is None else at - group.last_completed
    for shares in (group.time_used, group.memory_used):
        yield _share(sum(shares), len(shares)) / 1024
    yield group.completed
    yield group.elapsed_last
    yield group.elapsed_least
    yield group.elapsed_most
    yield group.memory_most
    yield group.elapsed_unsuccessful
    yield group.submitted
    yield len(group.submits) - bisect_left(group.submits, at - _HOUR)
    yield len(group.submits) - bisect_left(group.submits, at - _DAY)
    yield nan if group.last_submit is None else at - group.last_submit
    running = group.started - group.released_started
    yield running
    yield group.submitted - group.released - running


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan
