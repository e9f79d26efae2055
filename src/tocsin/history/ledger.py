"""History job by job: the same numbers as the replay of a log, kept up to date while a cluster is watched."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from math import nan
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.frames import WINDOWS
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage, reached_at
from tocsin.history import recipe
from tocsin.history.group import Group, Release, statistics
from tocsin.history.nodes import NodeHistory, release_of

__all__ = ["FORGET", "Ledger"]

FORGET = 14 * 86400  # seconds after which an ended job is no longer reported
_ROOM = 100_000  # jobs remembered before the first are forgotten
_SUBMITTED, _STARTED, _RELEASED, _USED = 0, 1, 2, 3
_FIELDS = list(dict.fromkeys(name for key in recipe.KEYS for name in key.fields))
_NAMES = [key.name for key in recipe.KEYS]
_CLUSTER, _USER, _NAME = (_NAMES.index(name) for name in ("cluster", "user", "name"))
_COLUMNS = recipe.columns()
_PLACES = {name: place for place, name in enumerate(_COLUMNS)}
_WIDTH = len(recipe.STATISTICS)
_UNKNOWN = [nan] * _WIDTH
_NOTHING = Group()
"""The group of a value that no job had before; read-only."""
_READ = list(
    dict.fromkeys(
        [*KEY, "start", "known_at", "outcome", "elapsed", "max_memory", "req_memory", "time_limit", "node_list", *_FIELDS]
    )
)  # fmt: skip
_ASKED = [*_READ, "end"]


class Ledger:
    """What is known now, as a Known. `learn` takes jobs in any order; each counts from its own instant on.

    `features` and `node_outcomes` advance the ledger, so they must be called in order of time; a moment before the last
    one is answered from what is known by now. `peek` answers without advancing it. One thread advances the ledger;
    others hold `lock` while they peek.
    """

    now: int | None = None
    """Set by callers that ask about running jobs."""

    def __init__(
        self,
        *,
        machine: Machine | None = None,
        scripts: Callable[[str], str | None] | None = None,
        windows: Callable[[pl.DataFrame, int], pl.DataFrame] | None = None,
    ) -> None:
        self.machine = machine
        self.lock = RLock()
        self._windows = windows
        self.known_until = 0
        """The instant up to which everything has been counted."""
        self._scripts = scripts
        self.groups: list[dict[tuple[Any, ...], Group]] = [{} for _ in recipe.KEYS]
        """For each key of the recipe, the group of each of its values."""
        self.nodes = NodeHistory()
        self.learned: dict[tuple[Any, ...], tuple[int, int]] = {}
        """Events learned of each job (1 submission, 2 start, 4 outcome, 8 memory), and the instant of the last of them."""
        # Events still to be counted: submissions by (instant, id), starts and outcomes by (instant, key).
        self._submissions: list[tuple[Any, ...]] = []
        self._others: list[tuple[Any, ...]] = []
        self._room = _ROOM
        self.changes = 0
        """Grows whenever an answer may change."""
        self.followers: list[Callable[[pl.DataFrame], None]] = []
        """Receive what is learned, to keep copies of this ledger in other processes up to date."""

    def script(self, digest: str) -> str | None:
        return self._scripts(digest) if self._scripts else None

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self._windows(jobs, until) if self._windows else WINDOWS.to_frame()

    def learn(self, jobs: pl.DataFrame) -> None:
        """Learn the current state of jobs; no event of a job counts twice."""
        jobs = jobs.select(_READ)
        with self.lock:
            self._learn(jobs)
        for follow in self.followers:
            follow(jobs)

    def _learn(self, jobs: pl.DataFrame) -> None:
        self.changes += 1
        for row in jobs.iter_rows(named=True):
            key = _key(row)
            events, last = self.learned.get(key, (0, 0))
            known = row["known_at"] if row["outcome"] is not None else None
            used = known if row["max_memory"] is not None else None
            if used is not None and not events & 1 << _RELEASED:
                events, used = events | 1 << _USED, None  # it counts with the outcome
            for what, at in enumerate((row["submit"], row["start"], known, used)):
                if at is not None and not events & 1 << what:
                    if what == _SUBMITTED:
                        heappush(self._submissions, (at, key, what, row))
                    else:
                        heappush(self._others, (at, (key[3], key[1], key[2], key[0]), what, row))
                    events, last = events | 1 << what, max(last, at)
            self.learned[key] = (events, last)

    def advance(self, until: int) -> None:
        """Count everything that became known up to and including this instant."""
        with self.lock:
            self._count_upto((until + 1,), until)
            self.known_until = max(self.known_until, until)
        if len(self.learned) > self._room:
            old = self.known_until - FORGET
            self.learned = {
                key: (events, last)
                for key, (events, last) in self.learned.items()
                if not events & 4 or last >= old
            }
            self._room = 2 * len(self.learned) + _ROOM

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """One row per job, in order; a job that never reaches the stage has no values."""
        wanted = _COLUMNS if names is None else list(names)
        return _framed(self.numbers(jobs, stage=stage, names=wanted), wanted)

    def numbers(self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str]) -> npt.NDArray[np.float32]:
        """`features` as an array; NaN for null."""
        places, keys = _places_of(tuple(names))
        rows = jobs.rows(named=True) if jobs.height == 1 else jobs.select(_ASKED).rows(named=True)
        instants = [reached_at(stage, row["submit"], row["start"], row["end"]) for row in rows]
        order = sorted(
            (number for number, at in enumerate(instants) if at is not None),
            key=lambda n: (
                instants[n],
                rows[n]["job_id"],
                -1 if rows[n]["task"] is None else rows[n]["task"],
            ),
        )
        found = np.full((len(rows), len(places)), nan, np.float32)
        for number in order:
            at, row = instants[number], rows[number]
            assert at is not None, "jobs that do not reach the stage were left out"
            if stage is Stage.SUBMIT:
                with self.lock:
                    self._count_upto((at, _key(row)), at)
                    self.known_until = max(self.known_until, at - 1)
            else:
                self.advance(at)
            values: list[float] = []
            for key in range(len(recipe.KEYS)):
                values += self._statistics(key, row, at) if key in keys else _UNKNOWN
            found[number] = np.array(values)[places]
        return found

    def _statistics(self, place: int, row: dict[str, Any], at: int) -> Sequence[float]:
        """For the job's group of one key; unknown if the job has no such key."""
        group = self._group(place, row, make=False)
        return _UNKNOWN if group is None else [*statistics(group, at)]

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        """Exact for instants up to a day before the last one asked for."""
        if asked.height:
            with self.lock:
                self._count_upto((0,), int(asked["at"].max()))  # type: ignore[arg-type]  # an instant
        return self.nodes.read(asked)

    def peek(self) -> "Ledger":
        """A ledger to ask about instants from now on, while this one does not advance; valid until this one changes."""
        return _Peek(self)

    # --- events ----------------------------------------------------------------------------------

    def counted(self) -> dict[tuple[Any, ...], tuple[int, int]]:
        """The part of `learned` that has been counted."""
        counted = dict(self.learned)
        for _, _, what, row in (*self._submissions, *self._others):
            bits, last = counted[_key(row)]
            counted[_key(row)] = (bits & ~(1 << what), last)
        return counted

    def _count_upto(self, submissions: tuple[Any, ...], others: int) -> None:
        """Count submissions before this (instant, key), and starts and outcomes up to and including this instant."""
        while self._submissions and self._submissions[0][: len(submissions)] < submissions:
            self._count(_SUBMITTED, heappop(self._submissions)[3])
        while self._others and self._others[0][0] <= others:
            _, _, what, row = heappop(self._others)
            self._count(what, row)

    def _count(self, what: int, row: dict[str, Any]) -> None:
        self.changes += 1
        if what == _RELEASED:
            release, groups = Release(row), list(self._groups_of(row))
            if row["node_list"] is not None and release.code in recipe.COUNTED:
                cluster, own = groups[_CLUSTER], (groups[_USER], groups[_NAME])
                assert cluster is not None, "every job has a cluster"
                last = (group.recent for group in own if group is not None)
                self.nodes.release(
                    row["node_list"],
                    release_of(release.code, release.known, cluster.counts, cluster.ended, last),
                )
            for group in groups:
                if group is not None:
                    group.release(release)
        elif what == _USED:
            release = Release(row)
            for group in self._groups_of(row):
                if group is not None:
                    group.use(release)
        else:
            for group in self._groups_of(row):
                if group is not None:
                    if what == _SUBMITTED:
                        group.submission(row["submit"])
                    else:
                        group.started += 1

    def _groups_of(self, row: dict[str, Any]) -> Iterator[Group | None]:
        """The job's group for each key, to count in; None if it has no such key."""
        for place in range(len(recipe.KEYS)):
            yield self._group(place, row, make=True)

    def _group(self, place: int, row: dict[str, Any], *, make: bool) -> Group | None:
        fields = recipe.KEYS[place].fields
        if row[fields[0]] is None:
            return None
        name = tuple([row[field] for field in fields])
        group = self.groups[place].get(name)
        return self._missing(place, name, make) if group is None else group

    def _missing(self, place: int, name: tuple[Any, ...], make: bool) -> Group:
        """The group of a new value: a new one to count in, or an empty one to read."""
        if not make:
            return _NOTHING
        group = self.groups[place][name] = Group()
        return group


class _Peek(Ledger):
    """Counts ahead in copies of the groups and nodes of the underlying ledger."""

    def __init__(self, base: Ledger) -> None:
        super().__init__(machine=base.machine, scripts=base._scripts, windows=base._windows)
        self.now = base.now
        self.known_until = base.known_until
        self.nodes = base.nodes.branch()
        self._base = base.groups
        self._submissions, self._others = base._submissions[:], base._others[:]
        self._read: dict[tuple[Any, ...], Sequence[float]] = {}

    def _statistics(self, place: int, row: dict[str, Any], at: int) -> Sequence[float]:
        """Cached for all questions about the same job: each detector asks some, and changed requests share most."""
        asked = place, at, self.changes, *(row[field] for field in recipe.KEYS[place].fields)
        found = self._read.get(asked)
        if found is None:
            found = self._read[asked] = super()._statistics(place, row, at)
        return found

    def _missing(self, place: int, name: tuple[Any, ...], make: bool) -> Group:
        group = self._base[place].get(name)
        if group is None:
            return super()._missing(place, name, make)
        if make:
            group = self.groups[place][name] = group.copy()
        return group


@lru_cache(maxsize=32)
def _places_of(names: tuple[str, ...]) -> tuple[npt.NDArray[np.intp], frozenset[int]]:
    """The indices of these statistics, and the keys that they belong to."""
    places = [_PLACES[name] for name in names]
    return np.array(places, np.intp), frozenset(place // _WIDTH for place in places)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    """The key in the order in which the jobs of one second are counted."""
    return row["submit"], row["job_id"], -1 if row["task"] is None else row["task"], row["cluster"]


def _framed(values: npt.NDArray[np.float32], names: list[str]) -> pl.DataFrame:
    """A table of numbers as a frame in which nan is null."""
    if not values.size:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.Float32))
    flat = pl.Series(values.ravel(), nan_to_null=True)
    if len(values) == 1:  # three times as fast, and the usual case in a service
        return flat.to_frame().transpose(column_names=names)
    return flat.reshape(values.shape).arr.to_struct(names).struct.unnest()
