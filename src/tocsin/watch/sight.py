"""What one look at a cluster tells: records of the queue and of accounting, made ready for the store."""

import polars as pl

from tocsin.core.fields import KEY, Part, fields_of
from tocsin.core.frames import SCHEMA, key_text

__all__ = ["GRACE", "NOTHING", "changed", "from_accounting", "from_queue", "told_by_queue"]

GRACE = 60
"""Seconds for which an end in the queue waits for accounting, which alone tells what the job used.

slurmctld hands records to slurmdbd within 5 s; of a job that was never eligible accounting does not tell at all.
"""

NOTHING = pl.DataFrame(schema={**SCHEMA, "job": pl.String()})
"""No records, with the columns that records have here: the fields, and the key as text."""

_AFTERWARDS = fields_of(Part.OUTCOME, Part.USAGE)
_NOT_COMPARED = frozenset(
    {"job", "priority", "known_at"}
)  # priority is frozen as first seen, and changes all the time

_OVER = pl.col("outcome").is_not_null()


def from_queue(dump: pl.DataFrame, *, began: int) -> pl.DataFrame:
    """The records of the queue with their keys as text; what ended before the watch began is left out."""
    past = _OVER & (pl.col("end") < began)
    return (
        dump.filter(pl.col("submit").is_not_null() & pl.col("job_id").is_not_null() & ~past.fill_null(False))
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text())
    )


def told_by_queue(rows: pl.DataFrame, *, now: int) -> pl.DataFrame:
    """The same, with nothing said of an end that accounting has still time to tell."""
    waits = _OVER & (pl.col("end") + GRACE > now).fill_null(True)
    return rows.with_columns(
        pl.when(~waits).then(pl.col(name)).alias(name) for name in _AFTERWARDS
    ).with_columns(pl.when(_OVER).then(now).otherwise(None).cast(pl.Int64).alias("known_at"))


def from_accounting(frame: pl.DataFrame, *, began: int, now: int) -> pl.DataFrame:
    """The ended jobs in a frame of accounting; their outcomes are known from now on.

    A record without a partition is a stub: for some seconds slurmdbd knows that a job ended and not yet what it was,
    nor that it is a task of an array. Of jobs that live, only the queue is believed.
    """
    good = _OVER & (pl.col("end") >= began) & pl.col("partition").is_not_null()
    return (
        frame.filter(good.fill_null(False) & pl.col("submit").is_not_null() & pl.col("job_id").is_not_null())
        .unique(KEY, keep="last", maintain_order=True)
        .with_columns(key_text(), pl.lit(now, dtype=pl.Int64).alias("known_at"))
    )


def changed(rows: pl.DataFrame, seen: dict[str, int]) -> tuple[pl.DataFrame, dict[str, int]]:
    """The rows that differ from those seen before, and what is seen now."""
    compared = rows.select(name for name in rows.columns if name not in _NOT_COMPARED)
    marks = dict(zip(rows["job"].to_list(), compared.hash_rows(seed=7).to_list(), strict=True))
    fresh = [seen.get(job) != mark for job, mark in marks.items()]
    return rows.filter(pl.Series(fresh, dtype=pl.Boolean)), marks
