"""Observations of a cluster: records of its queue and of accounting, prepared for the store."""

import polars as pl

from tocsin.core.fields import KEY, Part, fields_of
from tocsin.core.frames import SCHEMA, key_text

__all__ = [
    "GRACE",
    "NOTHING",
    "changed",
    "from_accounting",
    "from_queue",
    "settled",
    "with_outcomes",
    "without_ends",
]

GRACE = 60
"""Seconds for which the verdict on an end shown by the queue waits for accounting, which has the usage.

slurmctld sends records to slurmdbd within 5 s; a job that was never eligible is not in accounting at all.
"""

NOTHING = pl.DataFrame(schema={**SCHEMA, "job": pl.String()})
"""No records, with the columns of records here: all fields, and the key as text."""

_AFTERWARDS = fields_of(Part.OUTCOME, Part.USAGE)
_NOT_COMPARED = frozenset(
    {"job", "priority", "known_at"}
)  # priority is frozen as first seen, since it changes all the time

_OVER = pl.col("outcome").is_not_null()


def from_queue(dump: pl.DataFrame, *, began: int) -> pl.DataFrame:
    """The records of the queue with their keys as text, without jobs that ended before the watch began."""
    past = _OVER & (pl.col("end") < began)
    return (
        dump.filter(pl.col("submit").is_not_null() & pl.col("job_id").is_not_null() & ~past.fill_null(False))
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text())
    )


def with_outcomes(rows: pl.DataFrame, *, now: int) -> pl.DataFrame:
    """Records of the queue with their outcomes, known from now on; ends without an instant are left to accounting.

    The run time is the time between start and end, until accounting reports it without suspended time.
    """
    waits = _OVER & pl.col("end").is_null()
    ran = pl.coalesce("elapsed", pl.when(_OVER).then(pl.col("end") - pl.col("start")))
    return rows.with_columns(
        pl.when(~waits).then(ran if name == "elapsed" else pl.col(name)).alias(name) for name in _AFTERWARDS
    ).with_columns(pl.when(_OVER).then(now).otherwise(None).cast(pl.Int64).alias("known_at"))


def without_ends(rows: pl.DataFrame) -> pl.DataFrame:
    """The same records as if the ends of their jobs were unknown."""
    return rows.with_columns(
        pl.when(~_OVER).then(pl.col(name)).alias(name) for name in (*_AFTERWARDS, "known_at")
    )


def settled(ends: pl.DataFrame, *, now: int) -> pl.DataFrame:
    """The ends that have waited long enough for accounting."""
    return ends.filter(pl.col("end") + GRACE <= now)


def from_accounting(frame: pl.DataFrame, *, now: int) -> pl.DataFrame:
    """The ended jobs in a frame of accounting; their outcomes are known from now on.

    A record without a partition is a stub: for some seconds, slurmdbd knows that a job ended but not its request, nor
    that it is a task of an array. For jobs that are alive, only the queue counts.
    """
    good = _OVER & pl.col("end").is_not_null() & pl.col("partition").is_not_null()
    return (
        frame.filter(good.fill_null(False) & pl.col("submit").is_not_null() & pl.col("job_id").is_not_null())
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text(), pl.lit(now, dtype=pl.Int64).alias("known_at"))
    )


def changed(rows: pl.DataFrame, seen: dict[str, int]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows that differ from those seen before, and the fingerprints of all rows."""
    compared = rows.select(name for name in rows.columns if name not in _NOT_COMPARED)
    marks = dict(zip(rows["job"].to_list(), compared.hash_rows(seed=7).to_list(), strict=True))
    fresh = [seen.get(job) != mark for job, mark in marks.items()]
    return rows.filter(pl.Series(fresh, dtype=pl.Boolean)), marks
