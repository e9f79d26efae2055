"""The columns by which jobs are clustered: what they requested, or what they used, on comparable scales."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.units import UNLIMITED

__all__ = [
    "COLUMNS",
    "Column",
    "Kind",
    "cpus",
    "duration",
    "memory",
    "memory_of",
    "run_time",
    "table",
    "wait",
    "whole",
]

Kind = Literal["request", "usage"]

_YEAR = 365 * 86_400


def duration(seconds: float) -> str:
    """
    >>> duration(40), duration(720), duration(3600), duration(200_000)
    ('40 s', '12 min', '1 h', '2.3 days')
    """
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= (2 * size if unit == "days" else 0.995 * size):
            return f"{_short(seconds / size)} {unit}"
    return f"{seconds:.0f} s"


def memory(amount: float) -> str:
    """
    >>> memory(4 * 2**30), memory(1.5 * 2**20)
    ('4 GB', '1.5 MB')
    """
    for unit, size in (("TB", 2**40), ("GB", 2**30), ("MB", 2**20)):
        if amount >= 0.995 * size:
            return f"{_short(amount / size)} {unit}"
    return f"{amount / 1024:.0f} KB"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 9.95 or abs(value - round(value)) < 0.05 else f"{value:.1f}"


def whole(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.0%}"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    label: str
    value: pl.Expr
    format: Callable[[float], str]
    logarithmic: bool = True
    """Distances are ratios: 2 and 4 CPUs are as far apart as 200 and 400."""
    of_one: Callable[[Mapping[str, Any]], float | None] | None = None
    """The same for one job, by the names of its fields: a query takes longer, and waits for the threads of polars."""

    def scaled(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.log2(values + 1) if self.logarithmic else values


def _known(field: str) -> pl.Expr:
    """Null for zero, which means "not given" or "everything on the node"."""
    return pl.when(pl.col(field) > 0).then(pl.col(field))


def _known_of_one(field: str) -> Callable[[Mapping[str, Any]], float | None]:
    return lambda job: job[field] if (job[field] or 0) > 0 else None


def _limit_of_one(job: Mapping[str, Any]) -> float | None:
    limit = job["time_limit"]
    return _YEAR if limit == UNLIMITED else limit if (limit or 0) > 0 else None


_limit = pl.when(pl.col("time_limit") == UNLIMITED).then(_YEAR).otherwise(_known("time_limit"))
run_time = pl.coalesce("elapsed", pl.col("end") - pl.col("start"))
wait = (pl.col("start") - pl.col("submit")).clip(lower_bound=0)
cpus = pl.coalesce(_known("alloc_cpus"), _known("req_cpus"))
memory_of = pl.coalesce(_known("alloc_memory"), _known("req_memory"))


def _requested(name: str, label: str, field: str, format: Callable[[float], str]) -> Column:
    return Column(name, label, _known(field), format, of_one=_known_of_one(field))


COLUMNS: Mapping[Kind, tuple[Column, ...]] = {
    "request": (
        _requested("cpus", "requested CPUs", "req_cpus", whole),
        _requested("nodes", "requested nodes", "req_nodes", whole),
        _requested("memory", "requested memory per node", "req_memory", memory),
        Column("gpus", "requested GPUs", pl.col("req_gpus"), whole, of_one=itemgetter("req_gpus")),
        Column("time", "time limit", _limit, duration, of_one=_limit_of_one),
    ),
    "usage": (
        Column("cpus", "CPUs", cpus, whole),
        Column("memory", "memory per node", memory_of, memory),
        Column("run_time", "run time", run_time, duration),
        Column("wait", "wait", wait, duration),
        Column("peak", "peak memory", _known("max_memory"), memory),
        Column(
            "busy",
            "CPU efficiency",
            (pl.col("cpu_seconds") / (run_time.cast(pl.Float64) * cpus)).clip(0, 1),
            _share,
            logarithmic=False,
        ),
        Column("time_used", "used share of the time limit", (run_time / _limit).clip(0, 1), _share, False),
    ),
}
"""HPE's columns (section VI: CPUs, memory, run time, wait) and the others that are known for each kind."""


def table(jobs: pl.DataFrame, columns: tuple[Column, ...]) -> NDArray[np.float64]:
    """The values of the columns, one row per job; NaN if unknown."""
    single = [column.of_one for column in columns if column.of_one]
    if jobs.height == 1 and len(single) == len(columns):
        row = jobs.row(0, named=True)
        values = np.array([[of_one(row) for of_one in single]], np.float64)
    else:
        made = jobs.select(column.value.cast(pl.Float64).alias(column.name) for column in columns)
        values = made.to_numpy().astype(np.float64)
    values[~np.isfinite(values) | (values < 0)] = np.nan  # clocks that were set back, division by zero
    return values
