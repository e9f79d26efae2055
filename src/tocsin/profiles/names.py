"""Names of profiles in words, such as "short single-CPU jobs of many users, 12 min of 1 h requested"."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tocsin.core.units import UNLIMITED
from tocsin.profiles.columns import cpus, duration, memory, memory_of, run_time

__all__ = ["LONG", "SHORT", "length", "profile_names"]

SHORT, LONG = 3600, 8 * 3600
"""Run times in seconds: short jobs end within an hour, long ones take a working day or more. HPE's Fig. 5 does not
state its bounds."""
_MOST = 0.9
_HALF = 0.5
_FEW = 5


def length(seconds: pl.Expr) -> pl.Expr:
    return (
        pl.when(seconds < SHORT).then(pl.lit("short")).when(seconds < LONG).then(pl.lit("medium"))
        .when(seconds >= LONG).then(pl.lit("long"))
    )  # fmt: skip


def profile_names(jobs: pl.DataFrame, numbers: pl.Series, count: int) -> list[str]:
    """A distinct name for each of the profiles 0 to count - 1; `numbers` holds the profile of each job."""
    facts = _facts(jobs.with_columns(numbers.alias("_profile")))
    rows = [facts.get(number, {}) for number in range(count)]
    return _distinct([_name(row) for row in rows], rows)


def _facts(jobs: pl.DataFrame) -> dict[int, dict[str, Any]]:
    limit = pl.when(pl.col("time_limit") < UNLIMITED).then(pl.col("time_limit"))
    users = jobs.filter(pl.col("user").is_not_null()).group_by("_profile", "user").len()
    users = users.group_by("_profile").agg(
        pl.len().alias("users"), (pl.col("len").max() / pl.col("len").sum()).alias("top")
    )
    medians = jobs.group_by("_profile").agg(
        cpus.median().alias("cpus"),
        pl.coalesce("alloc_nodes", "req_nodes").median().alias("nodes"),
        pl.coalesce("alloc_gpus", "req_gpus").median().alias("gpus"),
        memory_of.median().alias("memory"),
        run_time.median().alias("run_time"),
        limit.median().alias("limit"),
    )
    found = medians.join(users, on="_profile", how="left")
    return {row["_profile"]: row for row in found.iter_rows(named=True) if row["_profile"] is not None}


def _name(facts: Mapping[str, Any]) -> str:
    words = [_long(facts.get("run_time")), _size(facts), "jobs", _users(facts)]
    name = " ".join(word for word in words if word)
    times = _times(facts.get("run_time"), facts.get("limit"))
    return f"{name}, {times}" if times else name


def _long(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return "short" if seconds < SHORT else "medium" if seconds < LONG else "long"


def _size(facts: Mapping[str, Any]) -> str:
    gpus, nodes, number = (round(facts.get(name) or 0) for name in ("gpus", "nodes", "cpus"))
    if gpus:
        return f"{gpus:,}-GPU"
    if nodes > 1:
        return f"{nodes:,}-node"
    return "" if not number else "single-CPU" if number == 1 else f"{number:,}-CPU"


def _users(facts: Mapping[str, Any]) -> str:
    users, top = facts.get("users"), facts.get("top")
    if not users or top is None:
        return ""
    if top >= _MOST:
        return "of one user"
    if top >= _HALF:
        return "mostly of one user"
    return "of few users" if users <= _FEW else "of many users"


def _times(run: float | None, limit: float | None) -> str:
    if run is not None and limit is not None:
        return f"{duration(run)} of {duration(limit)} requested"
    if run is not None:
        return f"{duration(run)} each"
    return f"{duration(limit)} requested" if limit is not None else ""


def _distinct(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names; equal ones are told apart by CPUs and memory or, failing that, by a number."""
    if len(set(names)) == len(names):
        return list(names)
    fuller = [
        name + "".join(f", {word}" for word in (_cpus(row), _memory(row)) if word)
        if names.count(name) > 1
        else name
        for name, row in zip(names, rows, strict=True)
    ]
    return [
        name if fuller.count(name) == 1 else f"{name} ({fuller[: place + 1].count(name)})"
        for place, name in enumerate(fuller)
    ]


def _cpus(row: Mapping[str, Any]) -> str:
    return f"{row['cpus']:,.0f} CPUs" if (row.get("cpus") or 0) > 1 and (row.get("nodes") or 0) > 1 else ""


def _memory(row: Mapping[str, Any]) -> str:
    return f"{memory(row['memory'])} per node" if row.get("memory") else ""
