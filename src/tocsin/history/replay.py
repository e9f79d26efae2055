"""History for a whole log at once: for each job, what was known when it reached a stage, by sorts and running sums.

All sums are of integers, so outcomes that become known later cannot change a bit of a value, and the ledger, which
counts one by one, computes the same.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.frames import WINDOWS, reached_at
from tocsin.core.machine import Machine
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.history import recipe
from tocsin.history.nodes import NodeLog

__all__ = ["READS", "Replay"]

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

_HOUR, _DAY = 3600, 86400
_NEVER = np.int64(2**40)  # later than any instant
_LONG = np.int64(2**38)  # longer than any run, larger (in KiB) than any memory
_MIXERS = tuple(np.uint64(2 * (0x9E3779B97F4A7C15 * n % 2**63) + 1) for n in range(1, 9))


class Replay:
    """A finished log as a Known. `log` must have all jobs that share one of the `keys` with the jobs asked for.

    Statistics of other keys are null.
    """

    def __init__(
        self,
        log: pl.DataFrame,
        *,
        machine: Machine | None = None,
        scripts: Callable[[str], str | None] | None = None,
        windows: Callable[[pl.DataFrame, int], pl.DataFrame] | None = None,
        now: int | None = None,
        keys: tuple[recipe.Key, ...] = tuple(recipe.KEYS),
    ) -> None:
        self.machine = machine
        self.now = now
        self._scripts = scripts
        self._windows = windows
        self._keys = keys
        self._log = log.sort("submit", "job_id", "task", nulls_last=False)
        self._columns = _Columns(self._log)
        self._nodes: NodeLog | None = None

    def script(self, digest: str) -> str | None:
        return self._scripts(digest) if self._scripts else None

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self._windows(jobs, until) if self._windows else WINDOWS.to_frame()

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        """One row per job, in order; a job that never reaches the stage has no values."""
        wanted = recipe.columns() if names is None else list(names)
        asked = _Asked.of(jobs, self._log, self._columns, stage)
        found: dict[str, Floats] = {}
        nothing = np.full(jobs.height, np.nan, np.float32)
        of_key: dict[str, set[str]] = {}
        for name in wanted:
            of_key.setdefault(name.partition(".")[0], set()).add(name.partition(".")[2])
        few = 0 < jobs.height * _FEW < self._log.height
        for key, log_groups, groups in self._groups(jobs, of_key.keys(), few):
            log, instants = self._columns, asked
            if few:  # only the rows of the log that share a value with one of them
                rows = np.flatnonzero(log_groups >= 0)
                log, instants, log_groups = log.of_rows(rows), asked.of_rows(rows), log_groups[rows]
            for name, values in _statistics(log, log_groups, instants, groups, of_key[key.name]):
                found[recipe.column(key.name, name)] = values
        return pl.DataFrame({name: found.get(name, nothing) for name in wanted}).fill_nan(None)

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        if self._nodes is None:  # computed lazily: few questions are about nodes
            self._nodes = NodeLog(self._log)
        return self._nodes.read(asked)

    def _groups(
        self, jobs: pl.DataFrame, wanted: Collection[str], few: bool
    ) -> Iterator[tuple[recipe.Key, Ints, Ints]]:
        """For each wanted key, the group numbers of the log's rows and of the jobs; -1 for a job without such a key.

        With `few`, rows of the log that share no group with a job have -1, too.
        """
        same = jobs is self._log
        hashed: dict[str, npt.NDArray[np.uint64]] = {}
        rows = self._log if same else pl.concat([self._log.select(_FIELDS), jobs.select(_FIELDS)])
        for name in _FIELDS:
            hashed[name] = rows[name].hash(seed=0).to_numpy()
        for key in self._keys:
            if key.name not in wanted:
                continue
            mixed = np.zeros(rows.height, np.uint64)
            for mixer, name in zip(_MIXERS, key.fields, strict=False):
                mixed = (mixed ^ hashed[name]) * mixer
            numbers = _found_among(mixed, mixed[self._log.height :]) if few else _numbered(mixed)
            numbers[rows[key.fields[0]].is_null().to_numpy()] = -1
            cut = self._log.height
            yield key, numbers[:cut], numbers if same else numbers[cut:]


_FEW = 50  # with this many jobs in the log per requested job, most of the log is irrelevant
_FIELDS = list(dict.fromkeys(name for key in recipe.KEYS for name in key.fields))
READS = tuple(
    dict.fromkeys([*KEY, *_FIELDS, "start", "known_at", "outcome", "elapsed", "max_memory", "node_list"])
)
"""The fields of a log that are used; no others need to be loaded from a store."""


def _numbered(values: npt.NDArray[np.uint64]) -> Ints:
    """A number for each distinct value."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _found_among(values: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]) -> Ints:
    """The index of each value among the wanted ones; -1 if absent."""
    known = np.unique(wanted)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[place] == values, place, -1)


class _Columns:
    """The log's columns as integers, converted once for all keys."""

    def __init__(self, log: pl.DataFrame) -> None:
        self.submit = _ints(log["submit"], 0)
        self.start = _ints(log["start"], _NEVER)
        known = _ints(log["known_at"], _NEVER)
        code = log["outcome"].replace_strict(
            {str(outcome): number for outcome, number in recipe.CLASSES.items()},
            default=-1,
            return_dtype=pl.Int64,
        )
        self.code = _ints(code, -1)
        self.known = np.where(self.code >= 0, known, _NEVER)
        key = pl.struct("cluster", "job_id", pl.col("task").fill_null(-1), "submit")
        by_key = log.select(key.rank("ordinal")).to_series().to_numpy()
        order = np.lexsort((by_key, self.known))
        self.released = order[self.known[order] < _NEVER]
        self.elapsed = np.minimum(_ints(log["elapsed"], -1), _LONG - 1)
        self.memory = np.minimum(_ints(log["max_memory"], -1) >> 10, _LONG - 1)
        self.time_used = ratio(self.elapsed, _ints(log["time_limit"], 0))
        self.memory_used = ratio(_ints(log["max_memory"], -1), _ints(log["req_memory"], 0))

    def of_rows(self, rows: Ints) -> "_Columns":
        """The columns of these rows; `rows` are sorted."""
        part = object.__new__(_Columns)
        for name in ("submit", "start", "code", "known", "elapsed", "memory", "time_used", "memory_used"):
            setattr(part, name, getattr(self, name)[rows])
        place = np.full(len(self.submit), -1, np.int64)
        place[rows] = np.arange(len(rows))
        released = place[self.released]
        part.released = released[released >= 0]
        return part


def ratio(used: Ints, asked: Ints) -> Ints:
    """Used over requested in 1/1024, at most 64; -1 if one of them is unknown."""
    good = (used >= 0) & (asked > 0) & (asked < UNLIMITED)
    safe = np.where(good, asked, 1)
    # Division first, because the product would overflow: memory is in bytes.
    whole, rest = np.divmod(np.where(good, used, 0), safe)
    shares = np.minimum(whole, 64) * 1024 + (rest.astype(np.float64) * 1024 / safe).astype(np.int64)
    return np.where(good, np.minimum(shares, 64 * 1024), -1)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The instants asked for."""

    at: Ints
    """The instants; _NEVER for a job that never reaches the stage."""
    place: Ints
    """How many jobs of the log were submitted before; at the submission, those of the same second by key."""
    hour: Ints
    day: Ints

    @classmethod
    def of(cls, jobs: pl.DataFrame, log: pl.DataFrame, columns: _Columns, stage: Stage) -> "_Asked":
        at = _ints(jobs.select(reached_at(stage)).to_series(), _NEVER)
        place = np.searchsorted(columns.submit, at, side="right")
        if stage is Stage.SUBMIT:
            numbered = log.select(KEY).with_row_index("place")
            own = jobs.select(KEY).join(
                numbered, on=KEY, how="left", nulls_equal=True, maintain_order="left"
            )["place"]
            place = np.where(own.is_null().to_numpy(), place, _ints(own, 0))
        return cls(
            at,
            place.astype(np.int64),
            np.searchsorted(columns.submit, at - _HOUR, side="left").astype(np.int64),
            np.searchsorted(columns.submit, at - _DAY, side="left").astype(np.int64),
        )

    def of_rows(self, rows: Ints) -> "_Asked":
        """The same instants in a log of these rows alone."""
        places = (np.searchsorted(rows, places, side="left") for places in (self.place, self.hour, self.day))
        return _Asked(self.at, *places)


class _Sequence:
    """Rows of the log sorted by group and time, to look up instants in."""

    def __init__(self, rows: Ints, times: Ints, groups: Ints, span: np.int64) -> None:
        """`rows` are in order of time; those without a group are left out."""
        rows, times = rows[groups[rows] >= 0], times[groups[rows] >= 0]
        order = np.argsort(groups[rows], kind="stable")
        self.rows = rows[order]
        self.groups = groups[self.rows]
        self._at = self.groups * span + times[order]
        self._span = span

    def upto(self, groups: Ints, times: Ints) -> Ints:
        """The index after the group's last row at or before the time."""
        return np.searchsorted(self._at, groups * self._span + times, side="right")

    def before(self, groups: Ints, times: Ints) -> Ints:
        return np.searchsorted(self._at, groups * self._span + times, side="left")

    def sums(self, values: npt.NDArray[Any]) -> Ints:
        """Running totals over the sorted rows, with a leading zero."""
        return np.concatenate(([0], np.cumsum(values[self.rows], dtype=np.int64)))


def _statistics(
    log: _Columns, log_groups: Ints, asked: _Asked, groups: Ints, wanted: Collection[str]
) -> Iterator[tuple[str, Floats]]:
    """The wanted statistics of one key, computed with the questions sorted by group and instant."""
    order = np.lexsort((asked.place, asked.at, groups))
    group, at = groups[order], asked.at[order]
    reached = (group >= 0) & (at < _NEVER)
    ask = _Question(log, log_groups, group, np.where(reached, at, 0))
    place, hour, day = asked.place[order], asked.hour[order], asked.day[order]
    for name, values in (*ask.outcomes(), *ask.usage(), *ask.submissions(place, hour, day)):
        if name not in wanted:
            continue
        result = np.empty(len(order), np.float32)
        result[order] = np.where(reached, values, np.nan)
        yield name, result


class _Question:
    """The statistics of one key for sorted (group, instant) pairs."""

    def __init__(self, log: _Columns, log_groups: Ints, group: Ints, at: Ints) -> None:
        self.log, self.log_groups = log, log_groups
        self.group, self.at = np.maximum(group, 0), at
        self.span = np.int64(max(_last(log.submit), _last(log.start), _last(log.known), _last(at)) + _DAY)
        released = log.released
        self.all = _Sequence(released, log.known[released], log_groups, self.span)
        counted = released[np.isin(log.code[released], list(recipe.COUNTED))]
        self.seen = _Sequence(counted, log.known[counted], log_groups, self.span)
        self.now = self.seen.upto(self.group, at)
        self.first = self.seen.before(self.group, np.zeros_like(at))

    def outcomes(self) -> Iterator[tuple[str, Any]]:
        seen, now, first = self.seen, self.now, self.first
        code = self.log.code
        week = np.maximum(seen.upto(self.group, np.maximum(self.at - recipe.WEEK, -1)), first)
        yield "ended", now - first
        yield "ended_week", now - week
        for name, classes in (("failed", recipe.FAILED), ("unsuccessful", recipe.UNSUCCESSFUL)):
            total = seen.sums(np.isin(code, list(classes)))
            yield name, _share(total, first, now)
            for number in recipe.LAST:
                yield f"{name}_last{number}", _share(total, np.maximum(now - number, first), now)
            yield f"{name}_week", _share(total, week, now)
        for name, classes in (
            ("timeout", recipe.TIMEOUT),
            ("out_of_memory", recipe.OUT_OF_MEMORY),
            ("node", recipe.NODE),
        ):
            yield name, _share(seen.sums(np.isin(code, list(classes))), first, now)
        for name, classes in (
            ("unsuccessful", recipe.UNSUCCESSFUL),
            ("completed", frozenset({recipe.COMPLETED})),
        ):
            part = self._part(np.isin(code, list(classes)))
            yield f"since_{name}", self.at - part.at_last(self.log.known[part.seen.rows])
        if not len(seen.rows):
            yield from (
                ("last", np.full(len(now), np.nan)),
                ("streak", now * 0),
                ("since", np.full(len(now), np.nan)),
            )
            return
        any_, last = now > first, np.maximum(now - 1, 0)
        yield "last", np.where(any_, code[seen.rows][last], np.nan)
        yield "streak", np.where(any_, _streaks(seen, np.isin(code, list(recipe.UNSUCCESSFUL)))[last], 0)
        yield "since", np.where(any_, self.at - self.log.known[seen.rows][last], np.nan)

    def usage(self) -> Iterator[tuple[str, Any]]:
        log = self.log
        for name, shares in (("time_used", log.time_used), ("memory_used", log.memory_used)):
            part = self._part(shares >= 0)
            total = part.seen.sums(shares)
            recent = np.maximum(part.now - recipe.RECENT, part.first)
            yield name, _share(total, recent, part.now) / 1024
        completed = log.code == recipe.COMPLETED
        done = self._part(completed)
        yield "completed", done.now - done.first
        run = self._part(completed & (log.elapsed >= 0))
        yield "elapsed_last", run.at_last(log.elapsed[run.seen.rows])
        yield "elapsed_least", run.at_last(-_highest(run.seen, -log.elapsed))
        yield "elapsed_most", run.at_last(_highest(run.seen, log.elapsed))
        large = self._part(completed & (log.memory >= 0))
        yield "memory_most", large.at_last(_highest(large.seen, log.memory) * 1024)
        bad = self._part(np.isin(log.code, list(recipe.UNSUCCESSFUL)) & (log.elapsed >= 0))
        yield "elapsed_unsuccessful", bad.at_last(log.elapsed[bad.seen.rows])

    def submissions(self, place: Ints, hour: Ints, day: Ints) -> Iterator[tuple[str, Any]]:
        log, group = self.log, self.group
        rows = np.arange(len(log.submit), dtype=np.int64)
        sent = _Sequence(rows, rows, self.log_groups, np.int64(len(rows) + 1))
        upto, first = sent.before(group, place), sent.before(group, np.zeros_like(place))
        yield "submitted", upto - first
        yield "submitted_hour", np.maximum(upto - sent.before(group, hour), 0)
        yield "submitted_day", np.maximum(upto - sent.before(group, day), 0)
        last = log.submit[sent.rows][np.maximum(upto - 1, 0)] if len(sent.rows) else np.zeros_like(upto)
        yield "since_submitted", np.where(upto > first, self.at - last, np.nan)
        begun = np.argsort(log.start, kind="stable")
        begun = begun[log.start[begun] < _NEVER]
        started = _Sequence(begun, log.start[begun], self.log_groups, self.span)
        runs = started.upto(group, self.at) - started.before(group, np.zeros_like(self.at))
        ended, none = self.all.upto(group, self.at), self.all.before(group, np.zeros_like(self.at))
        ran = self.all.sums(log.start < _NEVER)
        running = runs - (ran[ended] - ran[none])
        yield "running", running
        yield "pending", (upto - first) - (ended - none) - running

    def _part(self, wanted: Flags) -> "_Part":
        """The wanted outcomes among those that count."""
        kept = wanted[self.seen.rows]
        number = np.concatenate(([0], np.cumsum(kept)))
        part = object.__new__(_Sequence)
        part.rows, part.groups = self.seen.rows[kept], self.seen.groups[kept]
        return _Part(part, number[self.now], number[self.first])


@dataclass(frozen=True, slots=True)
class _Part:
    seen: _Sequence
    now: Ints
    first: Ints

    def at_last(self, values: npt.NDArray[Any]) -> Any:
        """The value at the last known row; NaN if there is none."""
        if not len(values):
            return np.full(len(self.now), np.nan)
        return np.where(self.now > self.first, values[np.maximum(self.now - 1, 0)], np.nan)


def _share(total: Ints, low: Ints, high: Ints) -> Any:
    number = high - low
    return np.where(number > 0, (total[high] - total[low]) / np.maximum(number, 1), np.nan)


def _streaks(seen: _Sequence, flag: Flags) -> Ints:
    """At each row, the length of the run of equal flags in its group: positive if flagged, else negative."""
    flags = flag[seen.rows]
    places = np.arange(len(flags))
    change = np.ones(len(flags), bool)
    change[1:] = (flags[1:] != flags[:-1]) | (seen.groups[1:] != seen.groups[:-1])
    length = places - np.maximum.accumulate(np.where(change, places, 0)) + 1
    return np.where(flags, length, -length)


def _highest(seen: _Sequence, values: Ints) -> Ints:
    """The highest value so far in the group of each row; each group is lifted above those before it."""
    lift = seen.groups * (2 * _LONG)
    highest: Ints = np.maximum.accumulate(values[seen.rows] + lift) - lift
    return highest


def _ints(series: pl.Series, absent: int | np.int64) -> Ints:
    return series.cast(pl.Int64).fill_null(int(absent)).to_numpy().astype(np.int64, copy=False)


def _last(times: Ints) -> int:
    real = times[times < _NEVER]
    return int(real.max()) if len(real) else 0
