"""Converts counters to rates: the growth between two points, with counter resets detected and left out."""

from typing import NamedTuple

import polars as pl

__all__ = ["POINTS", "Rates", "rates"]

POINTS = pl.Schema({"series": pl.Int64(), "at": pl.Float64(), "value": pl.Float64()})
"""Points of several series; invalid values are null or NaN."""

_LONGEST = 10
"""Steps: a longer gap does not give a rate."""


class Rates(NamedTuple):
    points: pl.DataFrame
    """POINTS with `delta` (since the point before) and `seconds` (between them); null at the first and after a reset."""
    resets: int


def rates(points: pl.DataFrame, *, step: float = 1.0, backward: bool = False) -> Rates:
    """The growth of each counter since the previous point; of points at one instant, the last counts.

    `backward`: the counter may decrease a little without a reset, as the kernel's idle time does; that counts as zero.
    """
    ordered = (
        points.filter(pl.col("value").is_finite())
        .unique(["series", "at"], keep="last", maintain_order=True)
        .sort("series", "at")
    )
    found = ordered.with_columns(
        delta=pl.col("value").diff().over("series"), seconds=pl.col("at").diff().over("series")
    )
    fell = pl.col("delta") < 0
    resets = 0 if backward else found.select(fell.sum()).item()
    delta = pl.when(fell).then(0.0 if backward else None).otherwise("delta")
    near = pl.col("seconds") <= _LONGEST * step
    return Rates(found.with_columns(delta=pl.when(near).then(delta)), int(resets or 0))
