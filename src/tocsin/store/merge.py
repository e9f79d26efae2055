"""Rules for merging a new record of a job into the stored one.

| part | rule |
|---|---|
| identity | never changes |
| request | frozen as first seen: a value stays, a null is filled |
| first_metrics | as first measured: what the verdict at `early` was made from |
| allocation, usage, outcome | the latest value counts; a missing value changes nothing |
| known_at, source, request_final | as first set |
| intervened | once true, always true |

A record of a pending or running job never changes a job that has ended.
"""

from dataclasses import dataclass

import polars as pl

from tocsin.core.fields import KEY, Part, fields_of

__all__ = ["NEEDED", "Merged", "merge"]

_LAST = frozenset(fields_of(Part.ALLOCATION, Part.USAGE, Part.OUTCOME))
NEEDED = ("outcome", "end", "known_at")
"""Columns that the rules need."""


@dataclass(frozen=True, slots=True)
class Merged:
    new: pl.DataFrame
    changed: pl.DataFrame
    """Changed rows: their key and the columns that changed in any of them."""


def merge(known: pl.DataFrame, incoming: pl.DataFrame, lag: int) -> Merged:
    """Both frames have the same columns, among them the key (unique in `known`) and NEEDED; `incoming` is in order.

    `lag`: seconds from the end until an outcome counts as known, without a known_at of its own.
    """
    stacked = _without_stale(pl.concat([known, incoming.with_columns(_known_at(lag))]))
    folded = (
        stacked.group_by(KEY, maintain_order=True)
        .agg(_folded(name) for name in stacked.columns if name not in KEY)
        .select(stacked.columns)
        .with_columns(_known_at(lag))
    )
    # The order is kept, so the first rows are the known jobs.
    before, after = known, folded.head(known.height)
    differs = {name: before[name].ne_missing(after[name]) for name in known.columns if name not in KEY}
    names = [name for name, where in differs.items() if where.any()]
    changed = after.filter(pl.any_horizontal(differs[name] for name in names)) if names else after.clear()
    return Merged(folded.slice(known.height), changed.select(*KEY, *names))


def _known_at(lag: int) -> pl.Expr:
    """Only ended jobs have one."""
    ended = pl.col("outcome").is_not_null()
    return pl.when(ended).then(pl.coalesce("known_at", pl.col("end") + lag)).alias("known_at")


def _folded(name: str) -> pl.Expr:
    if name == "intervened":
        return pl.col(name).max()
    return pl.col(name).last(ignore_nulls=True) if name in _LAST else pl.col(name).first(ignore_nulls=True)


def _without_stale(stacked: pl.DataFrame) -> pl.DataFrame:
    """Drop records of a live job that follow one of its end."""
    if stacked["outcome"].null_count() in (0, stacked.height):
        return stacked
    ended = pl.col("outcome").is_not_null()
    return stacked.filter(ended | ~ended.cum_max().over(KEY))
