"""The matrix of a model's features: computed from a job's own fields, copied from history."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.failure.features import FEATURES, FromHistory, LocalTime, Share
from tocsin.failure.job_fields import FromFields, JobFields, local_time, share_of
from tocsin.history.numbers import Numbers
from tocsin.models.engines import Floats, Matrix

__all__ = ["FeatureTable"]

_FEW = 100
"""Up to this many rows, copying all columns costs less than choosing some."""
_CELLS = 50_000
"""Limit on the values copied at once: many features for few jobs, one feature for many jobs."""


class FeatureTable:
    """Built once for a model; the same for one job as for a million."""

    def __init__(self, names: Sequence[str], *, zone: str, codes: Mapping[str, Mapping[str, float]]) -> None:
        """`codes` maps the known values of each coded field to numbers."""
        self._width = len(names)
        past = [(n, make) for n, name in enumerate(names) if isinstance(make := _make(name), FromHistory)]
        self.reads = tuple(dict.fromkeys(make.column for _, make in past))
        """The statistics of history that it reads."""
        own = {n: name for n, name in enumerate(names) if not isinstance(_make(name), FromHistory)}
        wanted = list(dict.fromkeys((*own.values(), *(make.over for _, make in past if make.over))))
        self._makes = [_from_fields(_make(name), zone, codes) for name in wanted]
        self._own = [(n, wanted.index(name)) for n, name in own.items()]
        self._asked = {name: n for n, name in enumerate(wanted)}
        alike: dict[tuple[bool, float | None, tuple[float, ...]], list[tuple[int, FromHistory]]] = {}
        for n, make in past:
            alike.setdefault((make.over is None, make.most, make.steps), []).append((n, make))
        self._past = list(alike.values())
        """Features computed in the same way from different statistics."""
        self._blocks_of: dict[tuple[str, ...], list[_Block]] = {}

    def values(self, jobs: pl.DataFrame, history: pl.DataFrame | Numbers) -> Matrix:
        """A row for each job, in column-major order; unknown values are NaN."""
        found = np.empty((jobs.height, self._width), np.float32, order="F")
        if isinstance(history, pl.DataFrame) and history.height > _FEW and history.width > len(self.reads):
            history = history.select(self.reads)
        past = Numbers.of(history)
        # Rows of the transposed tables, which are contiguous in memory.
        theirs, into = past.values.T, found.T
        fields = JobFields(jobs)
        mine = np.empty((len(self._makes), jobs.height))
        with np.errstate(all="ignore"):  # a nonsensical request may overflow
            for source, make in enumerate(self._makes):
                mine[source] = make(fields)
            for place, source in self._own:
                into[place] = mine[source]
            at_once = max(1, _CELLS // max(1, jobs.height))
            for block in self._blocks(past.names):
                for first in range(0, len(block.into), at_once):
                    some = slice(first, first + at_once)
                    into[block.into[some]] = _derived(
                        block.make, theirs[block.statistics[some]], mine[block.over[some]]
                    )
        return found

    def _blocks(self, columns: Sequence[str]) -> "list[_Block]":
        """The features computed from a history with these columns; cached for each of the few sets in use."""
        known = self._blocks_of.get(tuple(columns))
        if known is not None:
            return known
        places = {name: place for place, name in enumerate(columns)}
        blocks = self._blocks_of[tuple(columns)] = [
            _Block(
                made[0][1],
                np.array([n for n, _ in made]),
                np.array([places[make.column] for _, make in made]),
                np.array([self._asked[make.over] for _, make in made if make.over], np.int64),
            )
            for made in self._past
        ]
        return blocks


class _Block(NamedTuple):
    """Features computed in the same way: their columns, and the columns that they are computed from."""

    make: FromHistory
    into: NDArray[np.int64]
    statistics: NDArray[np.int64]
    over: NDArray[np.int64]


def _make(name: str) -> FromFields | LocalTime | Share | FromHistory:
    return FEATURES[name].make


def _from_fields(
    make: FromFields | LocalTime | Share | FromHistory, zone: str, codes: Mapping[str, Mapping[str, float]]
) -> FromFields:
    assert not isinstance(make, FromHistory), "history is copied, not computed"
    if isinstance(make, LocalTime):
        return local_time(make.part, zone)
    if isinstance(make, Share):
        return share_of(make.field, codes.get(make.field, {}))
    return make


def _derived(make: FromHistory, statistics: Matrix, over: Floats) -> NDArray[Any]:
    if make.over:
        return over / (statistics + np.float32(1))
    if make.steps:
        return np.digitize(np.nan_to_num(statistics), make.steps)
    return statistics if make.most is None else np.minimum(statistics, np.float32(make.most))
