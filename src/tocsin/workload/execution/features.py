"""Execution features: a job's usage in numbers, and the selection of those that predict an operation.

Features are the usage that accounting measured, a few ratios of it, and numeric columns of a table that are not fields
of ours: a site's own counters. The request, the outcome and the owner are not among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.fields import FIELDS, Part, ValueType, fields_of
from tocsin.models.engines import Matrix

__all__ = ["CORRELATION", "RATIOS", "Selection", "candidates", "matrix", "select"]

CORRELATION = 0.015
"""Features whose correlation with the label is smaller are dropped (RoWD, section 4.2)."""
PROPORTIONAL = 1 - 1e-9
"""From this correlation on, two features are linearly dependent, and one is enough."""

_LARGEST = float(np.finfo(np.float32).max)
_NUMBERS = (ValueType.COUNT, ValueType.NUMBER, ValueType.SECONDS, ValueType.BYTES)
_FIELDS = tuple(name for name in fields_of(Part.USAGE) if FIELDS[name].type in _NUMBERS)
_PER = ("alloc_nodes", "alloc_cpus")
"""The denominators of ratios."""

_ELAPSED = pl.when(pl.col("elapsed") > 0).then(pl.col("elapsed"))

RATIOS: Mapping[str, pl.Expr] = {
    "watts_per_node": pl.coalesce("power", pl.col("energy") / _ELAPSED) / pl.col("alloc_nodes"),
    "cpu_use": pl.col("cpu_seconds") / (_ELAPSED * pl.col("alloc_cpus")),
    "idle_share": pl.col("idle_seconds") / _ELAPSED,
    "intensity": pl.col("flops") / pl.col("memory_bandwidth"),  # the x-axis of the roofline (RoWD, figure 9)
    "read_rate": pl.col("read_bytes") / _ELAPSED,
    "write_rate": pl.col("written_bytes") / _ELAPSED,
}
"""A tree splits on one feature at a time; for a ratio, it would need many splits."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The features that one operation's model uses, and why all others are left out."""

    kept: tuple[str, ...]
    dropped: Mapping[str, str]


def candidates(jobs: pl.DataFrame, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Features of these jobs as numbers, by default all; unknown, infinite or undefined values are null."""
    own = [name for name, dtype in jobs.schema.items() if name not in FIELDS and dtype.is_numeric()]
    every = dict.fromkeys((*_FIELDS, *own, *RATIOS))
    wanted = every if names is None else [name for name in names if name in every]
    absent = [pl.lit(None, pl.Float64).alias(name) for name in (*_FIELDS, *_PER) if name not in jobs.columns]
    whole = jobs.with_columns(absent) if absent else jobs
    found = [
        (RATIOS[name] if name in RATIOS and name not in own else pl.col(name)).cast(pl.Float64).alias(name)
        for name in wanted
    ]
    # Beyond float32, a number would be infinite in the matrix.
    return whole.select(pl.when(value.abs() < _LARGEST).then(value) for value in found)


def matrix(values: pl.DataFrame, names: Sequence[str]) -> Matrix:
    """Columns by name, with gaps as NaN; a missing column is a gap in every row."""
    found = np.full((values.height, len(names)), np.nan, dtype=np.float32)
    for place, name in enumerate(names):
        if name in values.columns:
            found[:, place] = values[name].fill_null(float("nan")).to_numpy()
    return found


def select(values: pl.DataFrame, label: NDArray[np.float64]) -> Selection:
    """The features that correlate with the label, without duplicates."""
    dropped: dict[str, str] = {}
    kept: dict[str, NDArray[np.float64]] = {}
    for name in values.columns:
        column = values[name]
        known = column.is_not_null().to_numpy()
        if not known.any():
            dropped[name] = "is known of no job"
            continue
        standard = _standard(column.drop_nulls().to_numpy())
        if standard is None:
            dropped[name] = "is the same for all jobs"
            continue
        correlation = _correlation(column.drop_nulls(), standard, label[known])
        if correlation < CORRELATION:
            dropped[name] = f"its correlation with the label, {correlation:.4f}, is below {CORRELATION}"
            continue
        whole = np.full(len(known), np.nan)
        whole[known] = standard
        twin = next((other for other, seen in kept.items() if _proportional(seen, whole)), None)
        if twin is not None:
            dropped[name] = f"is the same as {twin}, or proportional to it"
            continue
        kept[name] = whole
    return Selection(tuple(kept), dropped)


def _correlation(column: pl.Series, standard: NDArray[np.float64], label: NDArray[np.float64]) -> float:
    """The larger of the correlations of values and of ranks: one extreme job can hide a feature from the first."""
    against = _standard(label)
    ranks = _standard(column.rank().cast(pl.Float64).to_numpy())
    if against is None or ranks is None:
        return 0.0
    return max(abs(float((seen * against).mean())) for seen in (standard, ranks))


def _standard(values: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Centred and scaled to unit spread; None without any spread."""
    scale = float(np.abs(values).max())
    if not scale:
        return None
    scaled = values / scale  # so that squares of bytes and joules stay finite
    spread = float(scaled.std())
    return np.asarray((scaled - scaled.mean()) / spread) if spread > 1e-12 else None


def _proportional(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    gaps = np.isnan(one)
    if not np.array_equal(gaps, np.isnan(other)):
        return False
    return abs(float((one[~gaps] * other[~gaps]).mean())) >= PROPORTIONAL
