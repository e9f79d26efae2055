"""Observations of a cluster: records of its queue and of accounting, prepared for the store."""

import polars as pl

from tocsin.core.fields import KEY, Part, fields_of
from tocsin.core.frames import SCHEMA, key_text

__all__ = ["GRACE", "NOTHING", "changed", "from_accounting", "from_queue", "without_fresh_ends"]

GRACE = 60
"""Seconds for which a job that ended in the queue waits for accounting, which has its usage.

slurmctld sends records to slurmdbd within 5 s; a job that was never eligible is not in accounting at all.
"""

NOTHING = pl.DataFrame(schema={**SCHEMA, "job": pl.String()})
"""No records, with the columns that records have here: all fields, and the key as text."""

_AFTERWARDS = fields_of(Part.OUTCOME, Part.USAGE)
_NOT_COMPARED = frozenset(
    {"job", "priority", "known_at"}
)  # priority is frozen as first seen, and changes all the time

_OVER = pl.col("outcome").is_not_null()


def from_queue(dump: pl.DataFrame, *, began: int) -> pl.DataFrame:
    """The records of the queue with their keys as text, without jobs that ended before the watch began."""
    past = _OVER & (pl.col("end") < began)
    return (
        dump.filter(pl.col("submit").is_not_null() & pl.col("job_id").is_not_null() & ~past.fill_null(False))
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text())
    )


def without_fresh_ends(rows: pl.DataFrame, *, now: int) -> pl.DataFrame:
    """The same, without ends so fresh that accounting may still report them."""
    waits = _OVER & (pl.col("end") + GRACE > now).fill_null(True)
    return rows.with_columns(
        pl.when(~waits).then(pl.col(name)).alias(name) for name in _AFTERWARDS
    ).with_columns(pl.when(_OVER).then(now).otherwise(None).cast(pl.Int64).alias("known_at"))


def from_accounting(frame: pl.DataFrame, *, began: int, now: int) -> pl.DataFrame:
    """The ended jobs in a frame of accounting; their outcomes are known from now on.

    A record without a partition is a stub: for some seconds slurmdbd knows that a job ended but not its request, nor
    that it is a task of an array. For jobs that are alive, only the queue counts.
    """
    good = _OVER & (pl.col("end") >= began) & pl.col("partition").is_not_null()
    return (
        frame.filter(good.fill_null(False) & pl.col("submit").is_not_null() & pl.col("job_id").is_not_null())
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text(), pl.lit(now, dtype=pl.Int64).alias("known_at"))
    )


def changed(rows: pl.DataFrame, seen: dict[str, int]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows that differ from those seen before, and the marks of all rows."""
    compared = rows.select(name for name in rows.columns if name not in _NOT_COMPARED)
    marks = dict(zip(rows["job"].to_list(), compared.hash_rows(seed=7).to_list(), strict=True))
    fresh = [seen.get(job) != mark for job, mark in marks.items()]
    return rows.filter(pl.Series(fresh, dtype=pl.Boolean)), marks
