"""The matrix of a model's features: a job's own fields by expressions built once, history by plain copies."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.failure.features import FEATURES, FromHistory, LocalTime, Share
from tocsin.models.engines import Floats, Matrix

__all__ = ["FeatureTable"]

_FEW = 100
"""Rows up to which it costs less to copy all columns than to choose some."""
_CELLS = 50_000
"""At most this many values are copied at once: for few jobs many features, for many jobs one."""
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


class FeatureTable:
    """Made once for a model, and the same for one job as for a million.

    A query of polars costs some microseconds for each of its expressions, whatever the number of rows; most features
    are statistics of the past as they are, and need none.
    """

    def __init__(self, names: Sequence[str], *, zone: str, codes: Mapping[str, Mapping[str, float]]) -> None:
        """`codes` has for each coded field the number of each value that is known."""
        self._width = len(names)
        past = [(n, make) for n, name in enumerate(names) if isinstance(make := _make(name), FromHistory)]
        self.reads = tuple(dict.fromkeys(make.column for _, make in past))
        """The statistics of the past that it takes."""
        own = {n: name for n, name in enumerate(names) if not isinstance(_make(name), FromHistory)}
        wanted = list(dict.fromkeys((*own.values(), *(make.over for _, make in past if make.over))))
        self._expressions = [_expression(name, zone, codes).cast(pl.Float64).alias(name) for name in wanted]
        self._own = [(n, wanted.index(name)) for n, name in own.items()]
        self._asked = {name: n for n, name in enumerate(wanted)}
        self._shares = {
            n: np.array([*codes.get(make.field, {}).values(), np.nan])
            for n, name in enumerate(wanted)
            if isinstance(make := _make(name), Share)
        }
        alike: dict[tuple[bool, float | None, tuple[float, ...]], list[tuple[int, FromHistory]]] = {}
        for n, make in past:
            alike.setdefault((make.over is None, make.most, make.steps), []).append((n, make))
        self._past = list(alike.values())
        """Features made in the same way from different statistics."""

    def values(self, jobs: pl.DataFrame, history: pl.DataFrame) -> Matrix:
        """A row for each job, column by column in memory; what is not known is NaN."""
        found = np.empty((jobs.height, self._width), np.float32, order="F")
        own = _numbers(jobs.select(self._expressions)) if self._expressions else np.empty((jobs.height, 0))
        past, places = self._of_history(history)
        # Rows of the transposed tables, which lie together in memory.
        mine, theirs, into = own.T, past.T, found.T
        with np.errstate(all="ignore"):  # a nonsensical request may be beyond all numbers of this size
            for place, source in self._own:
                values = mine[source]
                if source in self._shares:  # an index into the known values
                    values = self._shares[source][np.nan_to_num(values, nan=-1).astype(np.int64)]
                into[place] = values
            at_once = max(1, _CELLS // max(1, jobs.height))
            for made in self._past:
                for first in range(0, len(made), at_once):
                    block = made[first : first + at_once]
                    statistics = theirs[[places[make.column] for _, make in block]]
                    over = [self._asked[make.over] for _, make in block if make.over]
                    into[[n for n, _ in block]] = _derived(block[0][1], statistics, mine[over])
        return found

    def _of_history(self, history: pl.DataFrame) -> tuple[Matrix, dict[str, int]]:
        """Its numbers, and where each statistic stands."""
        if history.height > _FEW and history.width > len(self.reads):
            history = history.select(self.reads)
        return _numbers(history), {name: place for place, name in enumerate(history.columns)}


def _numbers(frame: pl.DataFrame) -> NDArray[Any]:
    """The values of a frame of numbers; null is NaN."""
    if frame.height != 1:
        return frame.to_numpy()
    # One row is read here: polars would hand it to its threads, and on a busy machine they take milliseconds to answer.
    single = {type(kind) for kind in frame.dtypes} == {pl.Float32}
    return np.array([frame.row(0)], np.float32 if single else np.float64)


def _make(name: str) -> pl.Expr | LocalTime | Share | FromHistory:
    return FEATURES[name].make


def _expression(name: str, zone: str, codes: Mapping[str, Mapping[str, float]]) -> pl.Expr:
    make = _make(name)
    if isinstance(make, LocalTime):
        return _clock(make.part, zone)
    if isinstance(make, Share):
        known = pl.Enum(list(codes.get(make.field, {})))
        return pl.col(make.field).cast(pl.String).cast(known, strict=False).to_physical()
    assert isinstance(make, pl.Expr), "history is copied, not computed by an expression"
    return make


def _clock(part: str, zone: str) -> pl.Expr:
    utc = pl.from_epoch("submit", time_unit="s").dt
    # The way through a zone takes most of the time of all expressions together.
    local = utc if zone in _UTC else utc.replace_time_zone("UTC").dt.convert_time_zone(zone).dt
    if part == "hour":
        # Multiplied, for polars divides one number otherwise than many: the last bit would differ.
        return local.hour().cast(pl.Float32) + local.minute().cast(pl.Float32) * (1 / 60)
    parts = {"weekday": local.weekday, "week": local.week, "month": local.month, "quarter": local.quarter}
    return parts[part]()


def _derived(make: FromHistory, statistics: Matrix, over: Floats) -> NDArray[Any]:
    if make.over:
        return over / (statistics + np.float32(1))
    if make.steps:
        return np.digitize(np.nan_to_num(statistics), make.steps)
    return statistics if make.most is None else np.minimum(statistics, np.float32(make.most))
