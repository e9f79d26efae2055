"""Frames of jobs in polars; the one module of core that needs more than the standard library.

Only packages that use frames import it, so the agent and `--help` never load polars.
"""

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.fields import FIELDS, Field, Job, ValueType
from tocsin.core.ids import CLUSTER
from tocsin.core.outcomes import STATES, SWF_STATUSES, Outcome
from tocsin.core.printable import without_surrogates
from tocsin.core.stages import CLOCK, Stage
from tocsin.core.units import MAX_INSTANT, UNLIMITED

__all__ = [
    "CPU_SAMPLES",
    "JOB_SAMPLES",
    "LARGEST",
    "SCHEMA",
    "UNREADABLE",
    "WINDOWS",
    "Samples",
    "conform",
    "from_jobs",
    "invalid_reason",
    "key_text",
    "outcome_from_state",
    "reached_at",
]

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""Errors from a damaged Parquet file: some damage makes polars panic, which is not an Exception."""

_TYPES: dict[ValueType, type[pl.DataType]] = {
    ValueType.TEXT: pl.String,
    ValueType.COUNT: pl.Int64,
    ValueType.NUMBER: pl.Float64,
    ValueType.FLAG: pl.Boolean,
    ValueType.INSTANT: pl.Int64,
    ValueType.SECONDS: pl.Int64,
    ValueType.BYTES: pl.Int64,
}

SCHEMA = pl.Schema({name: _TYPES[field.type]() for name, field in FIELDS.items()})

CPU_SAMPLES = pl.Schema(
    {
        "node": pl.String(),
        "cpu": pl.Int32(),
        "at": pl.Int64(),
        "job": pl.String(),
        **dict.fromkeys(CPU_CHANNELS, pl.Float32()),
    }
)
"""What each CPU did in the second that ended at `at`, and the raw id of the job on it (null: none)."""

JOB_SAMPLES = pl.Schema(
    {
        "node": pl.String(),
        "job": pl.String(),
        "at": pl.Int64(),
        **dict.fromkeys(JOB_CHANNELS, pl.Float64()),
    }
)
"""What each job used on a node in the second that ended at `at`; null if the source does not report it."""


class Samples(NamedTuple):
    """Samples of some nodes: CPU_SAMPLES and JOB_SAMPLES."""

    cpus: pl.DataFrame
    jobs: pl.DataFrame


WINDOWS = pl.Schema(
    {
        "job": pl.String(),
        "node": pl.String(),
        "cpu": pl.Int32(),
        "at": pl.Int64(),
        "gaps": pl.Int32(),
        "values": pl.List(pl.Float32()),
    }
)
"""Trace windows that end at `at`, one row each: `values` has all channels of the first second, then of the next.

A row with a CPU has that CPU's `CPU_CHANNELS`, and the key of the job that had it for most of the window (null:
none). A row without a CPU has `JOB_CHANNELS` of the job on that node. `gaps` counts the seconds without a sample.
"""


def conform(frame: pl.DataFrame) -> pl.DataFrame:
    """All fields in the table's order and types; missing ones are null, other columns are dropped."""
    return frame.select(
        pl.col(name).cast(dtype)
        if name in frame.columns
        else pl.repeat(None, pl.len(), dtype=dtype).alias(name)
        for name, dtype in SCHEMA.items()
    )


LARGEST = {
    ValueType.COUNT: 2**53,
    ValueType.INSTANT: MAX_INSTANT,
    ValueType.SECONDS: MAX_INSTANT,
    ValueType.BYTES: 2**62,
}
"""Larger values are corrupt: they overflow sums, or cannot be printed as a time."""


def invalid_reason(frame: pl.DataFrame) -> pl.Series:
    """Why each row cannot be a job (null if it can): checks the key and the range of every value."""
    reasons = [
        pl.when(~pl.col("cluster").str.contains(rf"^{CLUSTER}$")).then(pl.lit("invalid cluster name")),
        pl.when(pl.col("state").str.strip_chars() == "").then(pl.lit("blank state")),
    ]
    for name, field in FIELDS.items():
        if frame[name].null_count() == frame.height or field.type in (ValueType.TEXT, ValueType.FLAG):
            continue
        reasons.append(pl.when(~_in_range(name, field)).then(pl.lit(f"{name} out of range")))
    return frame.select(pl.coalesce(reasons).alias("reason"))["reason"]


def _in_range(name: str, field: Field) -> pl.Expr:
    value = pl.col(name)
    if field.type is ValueType.NUMBER:
        return value.is_nan() | value.is_finite()  # the store keeps NaN as null
    if name in ("exit_code", "exit_signal"):
        return value.is_between(-(2**31), 2**31)
    largest = {"job_id": 10**18 - 1, "raw_id": 10**18 - 1, "task": 2**32}.get(name, LARGEST[field.type])
    fits = value.is_between(0, largest)
    return fits | (value == UNLIMITED) if field.limit else fits


def from_jobs(jobs: Iterable[Job]) -> pl.DataFrame:
    """A few jobs as a frame, which holds UTF-8 only."""
    # For one job, polars takes twice as long with rows as with dicts.
    return pl.from_dicts(
        [{name: _utf8(getattr(job, name)) for name in FIELDS} for job in jobs], schema=SCHEMA
    )


def _utf8(value: object) -> object:
    return without_surrogates(value) if isinstance(value, str) else value


def outcome_from_state(state: pl.Expr) -> pl.Expr:
    """`core.outcomes.outcome_of` for a column of clean state names; unknown names give the outcome `unknown`."""
    known = {name: None if outcome is None else str(outcome) for name, outcome in STATES.items()}
    known |= {name: str(Outcome.UNKNOWN) for name in SWF_STATUSES.values() if name not in known}
    return state.replace_strict(known, default=pl.lit(str(Outcome.UNKNOWN)), return_dtype=pl.String)


def key_text() -> pl.Expr:
    """The key as text: `lab:17_4@1794775393`."""
    task = pl.when(pl.col("task").is_null()).then(pl.lit("")).otherwise(pl.format("_{}", pl.col("task")))
    return pl.format("{}:{}{}@{}", "cluster", "job_id", task, "submit").alias("job")


def reached_at(stage: Stage) -> pl.Expr:
    """`core.stages.reached_at` for the columns `submit`, `start` and `end`; null if a job does not reach the stage."""
    field, delay = CLOCK[stage]
    at = pl.col(field) + delay
    return pl.when((pl.col("end") < at).fill_null(False)).then(None).otherwise(at) if delay else at
