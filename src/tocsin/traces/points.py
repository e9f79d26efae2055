"""Samples as points: valid, in order of series and time, at most one for each instant or interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS
from tocsin.core.units import MAX_INSTANT

__all__ = ["MOST_CPUS", "Points", "binned", "enum", "named", "ordered", "possible"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

MOST_CPUS = 1 << 16
_ROUNDING = 0.01  # shares are printed with four digits, and sums of a few may slightly exceed one


@dataclass(frozen=True, slots=True)
class Points:
    """Samples in order of series and time, at most one for each position (instant in intervals)."""

    series: Ints
    place: Ints
    job: Ints
    values: Floats

    def take(self, rows: "Ints | Flags") -> "Points":
        return Points(self.series[rows], self.place[rows], self.job[rows], self.values[rows])


def possible(of_cpus: bool) -> pl.Expr:
    known = pl.col("node").is_not_null() & pl.col("at").is_between(0, MAX_INSTANT)
    if not of_cpus:
        return (known & pl.col("job").is_not_null()).fill_null(False)
    shares = [pl.col(name).is_between(-_ROUNDING, 1 + _ROUNDING) for name in CPU_CHANNELS]
    total = pl.sum_horizontal(CPU_CHANNELS) <= 1 + _ROUNDING
    cpu = pl.col("cpu").is_between(0, MOST_CPUS - 1)
    return pl.all_horizontal(known, cpu, total, *shares).fill_null(False)


def enum(samples: pl.DataFrame, column: str) -> pl.Enum:
    return pl.Enum(samples[column].unique().drop_nulls().sort())


def _codes(samples: pl.DataFrame, column: str, names: pl.Enum) -> Ints:
    return samples[column].cast(names).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()


def named(codes: Ints, names: pl.Enum) -> pl.Series:
    if not len(names.categories):
        return pl.repeat(None, len(codes), dtype=pl.String, eager=True)
    numbers = pl.Series(codes)
    return names.categories.gather(numbers.set(numbers < 0, None))


def ordered(
    samples: pl.DataFrame, channels: Sequence[str], names: list[pl.Enum], width: int
) -> tuple[Points, int]:
    """In order of series and time; of several samples in one second, the last is kept."""
    job = _codes(samples, "job", names[1])
    within = samples["cpu"].cast(pl.Int64).to_numpy() if channels == CPU_CHANNELS else job
    series = _codes(samples, "node", names[0]) * width + within
    values = samples.select(pl.col(name).cast(pl.Float32) for name in channels)
    points = Points(series, samples["at"].to_numpy(), job, values.to_numpy())
    if channels == CPU_CHANNELS:
        points = Points(series, points.place, job, np.clip(points.values, 0.0, 1.0))
    order = np.lexsort((points.place, series)) if not _ascending(series, points.place) else None
    if order is not None:
        points = points.take(order)
    same = (points.series[1:] == points.series[:-1]) & (points.place[1:] == points.place[:-1])
    if same.any():
        points = points.take(np.concatenate([~same, [True]]))
    return points, int(same.sum())


def _ascending(series: Ints, place: Ints) -> bool:
    step = np.diff(series)
    return bool(np.all((step > 0) | ((step == 0) & (np.diff(place) >= 0))))


def binned(points: Points, interval: int) -> Points:
    """The mean of the samples in each interval, with the job of the last; null if all are."""
    if interval == 1 or not len(points.series):
        return points
    place = -(-points.place // interval)
    new = (np.diff(points.series) != 0) | (np.diff(place) != 0)
    first = np.flatnonzero(np.concatenate([[True], new]))
    last = np.append(first[1:], len(place)) - 1
    known = np.isfinite(points.values)
    total = np.add.reduceat(np.where(known, points.values, 0.0), first, axis=0, dtype=np.float64)
    count = np.add.reduceat(known, first, axis=0, dtype=np.int64)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)
    return Points(points.series[first], place[first], points.job[last], mean)
