"""History job by job: the same numbers as the replay of a log, kept up to date while a cluster is watched."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.frames import WINDOWS
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage, reached_at
from tocsin.core.units import UNLIMITED
from tocsin.history import recipe
from tocsin.history.nodes import NodeBook, release_of

__all__ = ["Group", "Ledger"]

_HOUR, _DAY = 3600, 86400
_LONG = 2**38
FORGET = 14 * 86400  # seconds after which a job that has ended is no longer told of again
_ROOM = 100_000  # jobs that are remembered before the first are forgotten
_SUBMITTED, _STARTED, _RELEASED = 0, 1, 2
_CODES = {str(outcome): number for outcome, number in recipe.CLASSES.items()}
_FIELDS = list(dict.fromkeys(name for key in recipe.KEYS for name in key.fields))
_NAMES = [key.name for key in recipe.KEYS]
_CLUSTER, _USER, _NAME = (_NAMES.index(name) for name in ("cluster", "user", "name"))
_COLUMNS = recipe.columns()
_PLACES = {name: place for place, name in enumerate(_COLUMNS)}
_WIDTH = len(recipe.STATISTICS)
_READ = list(
    dict.fromkeys(
        (
            "cluster",
            "job_id",
            "task",
            "submit",
            "start",
            "known_at",
            "outcome",
            "elapsed",
            "max_memory",
            "req_memory",
            "time_limit",
            "node_list",
            *_FIELDS,
        )
    )
)
_ASKED = [*_READ, "end"]


class Ledger:
    """What is known now, as a Known. Jobs are told by `learn` in any order; each counts from its own instant on.

    Questions come in order of time. One about a moment before the last one is answered from what is known by now.
    """

    def __init__(
        self, *, machine: Machine | None = None, scripts: Callable[[str], str | None] | None = None
    ) -> None:
        self.machine = machine
        self.known_until = 0
        """The instant up to which everything has been counted."""
        self._scripts = scripts
        self.groups: list[dict[tuple[Any, ...], Group]] = [{} for _ in recipe.KEYS]
        """For each key of the recipe, what is known of each of its values."""
        self.nodes = NodeBook()
        self.told: dict[tuple[Any, ...], tuple[int, int]] = {}
        """What has been told of each job (1 that it was submitted, 2 that it started, 4 how it ended), and when the last
        of it became known."""
        # What lies ahead: submissions by (instant, id), outcomes by (known_at, key).
        self._submissions: list[tuple[Any, ...]] = []
        self._others: list[tuple[Any, ...]] = []
        self._room = _ROOM

    def script(self, digest: str) -> str | None:
        return self._scripts(digest) if self._scripts else None

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:  # noqa: ARG002  # no source of traces yet
        return WINDOWS.to_frame()

    def learn(self, jobs: pl.DataFrame) -> None:
        """Take note of jobs as they now stand; what was told before of a job is not counted again."""
        for row in jobs.select(_READ).iter_rows(named=True):
            key = _key(row)
            told, last = self.told.get(key, (0, 0))
            moments = (row["submit"], row["start"], row["known_at"] if row["outcome"] is not None else None)
            for what, at in enumerate(moments):
                if at is not None and not told & 1 << what:
                    if what == _SUBMITTED:
                        heappush(self._submissions, (at, key, what, row))
                    else:
                        heappush(self._others, (at, (key[3], key[1], key[2], key[0]), what, row))
                    told, last = told | 1 << what, max(last, at)
            self.told[key] = (told, last)

    def advance(self, until: int) -> None:
        """Count everything that became known up to and at this instant."""
        self._count_upto((until + 1,), until)
        self.known_until = max(self.known_until, until)
        if len(self.told) > self._room:
            old = self.known_until - FORGET
            self.told = {key: told for key, told in self.told.items() if not told[0] & 4 or told[1] >= old}
            self._room = 2 * len(self.told) + _ROOM

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """One row a job, in order; a job that never reaches the stage has no values."""
        wanted = _COLUMNS if names is None else list(names)
        places = [_PLACES[name] for name in wanted]
        keys = {place // _WIDTH for place in places}
        # Column by column: for one job, a select costs more than all that is read by it.
        values = zip(*(jobs.get_column(name).to_list() for name in _ASKED), strict=True)
        rows = [dict(zip(_ASKED, row, strict=True)) for row in values]
        moments = [reached_at(stage, row["submit"], row["start"], row["end"]) for row in rows]
        order = sorted(
            (number for number, at in enumerate(moments) if at is not None),
            key=lambda n: (moments[n], rows[n]["job_id"], -1 if rows[n]["task"] is None else rows[n]["task"]),
        )
        found = np.full((len(rows), len(wanted)), nan, np.float32)
        for number in order:
            at, row = moments[number], rows[number]
            assert at is not None, "those without a moment were left out"
            if stage is Stage.SUBMIT:
                self._count_upto((at, _key(row)), at)
                self.known_until = max(self.known_until, at - 1)
            else:
                self.advance(at)
            told: list[float] = []
            for key, group in enumerate(self._of(row)):
                told += _read(group, at) if group is not None and key in keys else _UNKNOWN
            found[number] = [told[place] for place in places]
        return _framed(found, wanted)

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        """For moments more than a day before the last question, from what is still remembered."""
        if asked.height:
            self._count_upto((0,), int(asked["at"].max()))  # type: ignore[arg-type]  # an instant
        return self.nodes.read(asked)

    # --- events ----------------------------------------------------------------------------------

    def counted(self) -> dict[tuple[Any, ...], tuple[int, int]]:
        """What was told and is counted by now; the rest lies ahead."""
        counted = dict(self.told)
        for _, _, what, row in (*self._submissions, *self._others):
            bits, last = counted[_key(row)]
            counted[_key(row)] = (bits & ~(1 << what), last)
        return counted

    def _count_upto(self, submissions: tuple[Any, ...], others: int) -> None:
        """Submissions before this (instant, key), and starts and outcomes up to and at this instant."""
        while self._submissions and self._submissions[0][: len(submissions)] < submissions:
            self._count(_SUBMITTED, heappop(self._submissions)[3])
        while self._others and self._others[0][0] <= others:
            _, _, what, row = heappop(self._others)
            self._count(what, row)

    def _count(self, what: int, row: dict[str, Any]) -> None:
        if what == _RELEASED:
            release, groups = _Release(row), list(self._of(row, make=True))
            if row["node_list"] is not None and release.code in recipe.COUNTED:
                cluster, kinds = groups[_CLUSTER], (groups[_USER], groups[_NAME])
                assert cluster is not None, "every job has a cluster"
                last = (group.recent for group in kinds if group is not None)
                self.nodes.release(
                    row["node_list"],
                    release_of(release.code, release.known, cluster.counts, cluster.ended, last),
                )
            for group in groups:
                if group is not None:
                    group.release(release)
        else:
            for group in self._of(row, make=True):
                if group is not None:
                    if what == _SUBMITTED:
                        group.submission(row["submit"])
                    else:
                        group.started += 1

    def _of(self, row: dict[str, Any], *, make: bool = False) -> Iterator["Group | None"]:
        """The job's group of each key; None where it has no such key."""
        for key, groups in zip(recipe.KEYS, self.groups, strict=True):
            if row[key.fields[0]] is None:
                yield None
                continue
            name = tuple([row[field] for field in key.fields])
            group = groups.get(name)
            if group is None and make:
                group = groups[name] = Group()
            yield _NOTHING if group is None else group


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    """The key in the order in which the jobs of one second are counted."""
    return row["submit"], row["job_id"], -1 if row["task"] is None else row["task"], row["cluster"]


class _Release:
    """An outcome as every key's group counts it."""

    __slots__ = ("code", "elapsed", "known", "memory", "memory_used", "started", "time_used")

    def __init__(self, row: dict[str, Any]) -> None:
        self.code = _CODES[row["outcome"]]
        self.known = row["known_at"]
        self.started = row["start"] is not None
        self.elapsed = None if row["elapsed"] is None else min(row["elapsed"], _LONG - 1)
        self.memory = None if row["max_memory"] is None else min(row["max_memory"] >> 10, _LONG - 1)
        self.time_used = _ratio(self.elapsed, row["time_limit"])
        self.memory_used = _ratio(row["max_memory"], row["req_memory"])


def _ratio(used: int | None, asked: int | None) -> int | None:
    """Used over asked in 1/1024, at most 64."""
    if used is None or used < 0 or not asked or asked < 0 or asked >= UNLIMITED:
        return None
    whole, rest = divmod(used, asked)
    return min(min(whole, 64) * 1024 + int(rest * 1024 / asked), 64 * 1024)


class Group:
    """What is known of the jobs that share a key."""

    __slots__ = (
        "completed",
        "counts",
        "day",
        "elapsed_last",
        "elapsed_least",
        "elapsed_most",
        "elapsed_unsuccessful",
        "ended",
        "hour",
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
        "submitted",
        "time_used",
        "week",
        "week_failed",
        "week_unsuccessful",
    )

    def __init__(self) -> None:
        self.ended = self.completed = self.released = self.released_started = self.started = (
            self.submitted
        ) = 0
        self.streak = self.last_known = self.week_failed = self.week_unsuccessful = 0
        self.counts: dict[int, int] = {}
        self.recent = bytearray()
        self.week: deque[tuple[int, int]] = deque()
        self.hour: deque[int] = deque()
        self.day: deque[int] = deque()
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
        self.hour.append(at)
        self.day.append(at)
        self.forget(at)

    def release(self, release: _Release) -> None:
        self.released += 1
        self.released_started += release.started
        code = release.code
        if code not in recipe.COUNTED:
            return
        self.ended += 1
        self.counts[code] = self.counts.get(code, 0) + 1
        self.recent.append(code)
        del self.recent[: -recipe.LAST[-1]]
        self.week.append((release.known, code))
        self.week_failed += code in recipe.FAILED
        self.week_unsuccessful += code in recipe.UNSUCCESSFUL
        self.last_known = release.known
        if code in recipe.UNSUCCESSFUL:
            self.streak = max(self.streak, 0) + 1
            self.last_unsuccessful = release.known
            if release.elapsed is not None:
                self.elapsed_unsuccessful = release.elapsed
        else:
            self.streak = min(self.streak, 0) - 1
        if release.time_used is not None:
            self.time_used = (*self.time_used, release.time_used)[-recipe.RECENT :]
        if release.memory_used is not None:
            self.memory_used = (*self.memory_used, release.memory_used)[-recipe.RECENT :]
        if code == recipe.COMPLETED:
            self._complete(release)
        self.forget(release.known)

    def _complete(self, release: _Release) -> None:
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
        if release.memory is not None:
            memory = release.memory * 1024
            self.memory_most = memory if not self.memory_most >= memory else self.memory_most

    def to_json(self) -> list[Any]:
        """All of it as plain values, in the order of the slots."""
        return [_plain(getattr(self, name)) for name in Group.__slots__]

    @classmethod
    def from_json(cls, values: list[Any]) -> "Group":
        group = cls()
        for name, value in zip(cls.__slots__, values, strict=True):
            setattr(group, name, _LIKE[name](value) if name in _LIKE else value)
        return group

    def forget(self, now: int) -> None:
        """Let go of what no window reaches any more."""
        while self.week and self.week[0][0] <= now - recipe.WEEK:
            _, code = self.week.popleft()
            self.week_failed -= code in recipe.FAILED
            self.week_unsuccessful -= code in recipe.UNSUCCESSFUL
        while self.hour and self.hour[0] < now - _HOUR:
            self.hour.popleft()
        while self.day and self.day[0] < now - _DAY:
            self.day.popleft()


_LIKE: dict[str, Callable[[Any], Any]] = {
    "counts": dict,
    "recent": bytearray,
    "week": lambda pairs: deque((known, code) for known, code in pairs),
    "hour": deque,
    "day": deque,
    "time_used": tuple,
    "memory_used": tuple,
    **dict.fromkeys(
        ("elapsed_last", "elapsed_least", "elapsed_most", "elapsed_unsuccessful", "memory_most"),
        lambda value: nan if value is None else value,
    ),
}


def _plain(value: Any) -> Any:
    """As JSON has it; there is no nan in JSON."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, bytearray | deque | tuple):
        return list(value)
    return None if value != value else value


_NOTHING = Group()
"""Of a value that no job had before; only read."""
_UNKNOWN = [nan] * _WIDTH
_FLAGS = {
    classes: bytes(code in classes for code in range(256)) for classes in (recipe.FAILED, recipe.UNSUCCESSFUL)
}
"""For each code whether it is of these classes, as `bytearray.translate` takes it."""


def _read(group: Group, at: int) -> Iterator[float]:
    """The statistics in the recipe's order."""
    group.forget(at)
    ended, week = group.ended, len(group.week)
    yield ended
    yield week
    for classes, in_week in (
        (recipe.FAILED, group.week_failed),
        (recipe.UNSUCCESSFUL, group.week_unsuccessful),
    ):
        yield _share(sum(number for code, number in group.counts.items() if code in classes), ended)
        flags = group.recent.translate(_FLAGS[classes])
        for number in recipe.LAST:
            yield _share(flags.count(1, -number), min(number, len(flags)))
        yield _share(in_week, week)
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
    yield len(group.hour)
    yield len(group.day)
    yield nan if group.last_submit is None else at - group.last_submit
    running = group.started - group.released_started
    yield running
    yield group.submitted - group.released - running


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _framed(values: npt.NDArray[np.float32], names: list[str]) -> pl.DataFrame:
    """A table of numbers as a frame in which nan is null."""
    if not values.size:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.Float32))
    flat = pl.Series(values.ravel(), nan_to_null=True)
    if len(values) == 1:  # three times as quick, and what a service asks for most
        return flat.to_frame().transpose(column_names=names)
    return flat.reshape(values.shape).arr.to_struct(names).struct.unnest()
