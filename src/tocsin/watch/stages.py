"""The stages that a job has reached, as bits, and whether a verdict on one is late."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import polars as pl

from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage

__all__ = ["BITS", "LATE_SECONDS", "bits_of", "can_wait", "late", "reached", "with_stage"]

BITS: Mapping[Stage, int] = MappingProxyType({Stage.SUBMIT: 1, Stage.START: 2, Stage.EARLY: 4, Stage.END: 8})
LATE_SECONDS = 120  # the verdict within two minutes (Proactive Precision, abstract)

_START, _END = pl.col("start"), pl.col("end")
_EARLY = reached_at(Stage.EARLY)
_OVER = pl.col("outcome").is_not_null()
_SETTLED = _OVER & _END.is_not_null()


def reached(now: int) -> pl.Expr:
    """The stages that a job has reached, according to a record read at `now` or later.

    A task of an array has no submission of its own: it inherits the verdict on its array.
    """
    lived = pl.when(_OVER).then(_END.is_not_null() & _EARLY.is_not_null()).otherwise(now >= _EARLY)
    stages = {
        Stage.SUBMIT: pl.col("task").is_null(),
        Stage.START: _START.is_not_null(),
        Stage.EARLY: lived,
        Stage.END: _SETTLED,
    }
    return pl.sum_horizontal(
        pl.when(condition.fill_null(False)).then(BITS[stage]).otherwise(0)
        for stage, condition in stages.items()
    ).cast(pl.Int64)


def with_stage(stage: Stage) -> pl.Expr:
    """Whether the stage is among those due."""
    return (pl.col("due") & BITS[stage]) != 0


def bits_of(given: Iterable[tuple[str, str]]) -> dict[str, int]:
    """(job, stage) pairs as bits by job."""
    found: dict[str, int] = {}
    for job, stage in given:
        found[job] = found.get(job, 0) | BITS.get(Stage(stage), 0)
    return found


def late(stage: Stage, now: int) -> pl.Expr:
    """Whether the verdict is late: the job is at a later stage, or reached this one long ago.

    The column `over` says whether the job was seen to have ended, even if its end is not known yet.
    """
    long_ago = now - reached_at(stage) > LATE_SECONDS
    over = pl.col("over")
    gone = {
        Stage.SUBMIT: _START.is_not_null() | over,
        Stage.START: over | (now >= _EARLY),
        Stage.EARLY: over,
        Stage.END: pl.lit(False),
    }[stage]
    return (gone | long_ago).fill_null(False)


def can_wait(stage: Stage, now: int) -> pl.Expr:
    """Whether the verdict may be given in a later round: the queue will show the job again, and it will not be late.

    An array may be known by its tasks alone, which are examined once.
    """
    waits = _START.is_null() & ~pl.col("over") & pl.col("array").is_null()
    return waits & (pl.col("submit") + LATE_SECONDS // 2 > now) & pl.lit(stage is Stage.SUBMIT)
