"""Tables about the jobs of each profile (HPE Figs 4 to 8) and correlations between their fields (Fig. 9)."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.units import UNLIMITED
from tocsin.profiles.columns import cpus, memory_of, run_time, wait
from tocsin.profiles.names import length

__all__ = ["correlations", "tables"]

FREQUENT = 20
"""Users with more jobs than this are frequent, as in the feature `activity`."""
_FACTOR = 2.0
"""Jobs with more than this many times the log's median memory per CPU are memory jobs; below the inverse, compute jobs.
HPE's Fig. 8 does not state its bounds."""
_MOST_ROWS = 20_000

Rows = list[dict[str, Any]]
_PROFILE = "profile"


def tables(jobs: pl.DataFrame, numbers: pl.Series, target: Target) -> dict[str, Rows]:
    """Resources (Fig. 4), durations (5), activity (6), outcomes (7) and types (8), each with one row per profile.

    `numbers` holds the profile of each job; jobs without one are left out.
    """
    frame = jobs.with_columns(numbers.alias(_PROFILE)).filter(pl.col(_PROFILE).is_not_null())
    return {
        "resources": _resources(frame),
        "durations": _counts(frame, length(run_time), ("short", "medium", "long")),
        "activity": _activity(frame),
        "outcomes": _outcomes(frame, target),
        "types": _counts(frame, _type(frame), ("balanced", "compute", "memory")),
    }


def correlations(
    jobs: pl.DataFrame, numbers: pl.Series, target: Target, zone: str = "UTC"
) -> tuple[list[str], NDArray[np.float64]]:
    """Spearman's correlation between the fields of finished jobs, and with their outcome.

    Users, accounts and groups count by how many jobs they have, because their ids have no order. Columns that do not
    vary are left out; each pair is compared on the jobs that have both values.
    """
    frame = jobs.with_columns(numbers.alias(_PROFILE)).filter(pl.col("outcome").is_not_null())
    local = pl.from_epoch("submit").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    limit = pl.when(pl.col("time_limit") < UNLIMITED).then(pl.col("time_limit"))
    positive, outcome = [str(o) for o in TARGETS[target]], pl.col("outcome")
    labelled = outcome.is_in([*positive, str(Outcome.COMPLETED)])
    made = frame.select(
        pl.when(labelled).then(outcome.is_in(positive)).alias(str(target)),
        pl.col(_PROFILE),
        cpus.alias("CPUs"),
        pl.coalesce("alloc_nodes", "req_nodes").alias("nodes"),
        memory_of.alias("memory"),
        pl.coalesce("alloc_gpus", "req_gpus").alias("GPUs"),
        limit.alias("time limit"),
        run_time.alias("run time"),
        pl.col("cpu_seconds").alias("CPU time"),
        wait.alias("wait"),
        *(
            pl.when(pl.col(field).is_not_null()).then(pl.len().over(field)).alias(f"{field}'s jobs")
            for field in ("user", "account", "group")
        ),
        local.dt.hour().alias("hour"),
        local.dt.weekday().alias("weekday"),
        local.dt.week().alias("week"),
        local.dt.month().alias("month"),
        local.dt.quarter().alias("quarter"),
    ).select(pl.all().cast(pl.Float64).fill_nan(None))
    made = made.gather_every(max(1, -(-made.height // _MOST_ROWS)))
    names = [column.name for column in made if column.n_unique() - bool(column.null_count()) > 1]
    values = made.select(names).fill_null(float("nan")).to_numpy()
    found = np.eye(len(names))
    for one in range(len(names)):
        for other in range(one):
            found[one, other] = found[other, one] = _spearman(values[:, one], values[:, other])
    return names, found


def _spearman(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    both = ~(np.isnan(one) | np.isnan(other))
    ranks = pl.DataFrame({"one": one[both], "other": other[both]}).select(pl.all().rank("average"))
    if ranks.height < 2 or not all(float(column.std() or 0) > 0 for column in ranks):  # type: ignore[arg-type]  # numbers
        return float("nan")
    return float(np.corrcoef(ranks.to_numpy().T)[0, 1])


def _resources(frame: pl.DataFrame) -> Rows:
    known = {"cpus": cpus, "memory": memory_of, "run_time": run_time, "wait": wait}
    return (
        frame.group_by(_PROFILE)
        .agg(
            pl.len().alias("jobs"),
            pl.col("user").drop_nulls().n_unique().alias("users"),
            *(value.mean().alias(f"{name}_mean") for name, value in known.items()),
            *(value.std().alias(f"{name}_deviation") for name, value in known.items()),
            *(value.median().alias(f"{name}_median") for name, value in known.items()),
        )
        .sort(_PROFILE)
        .to_dicts()
    )


def _counts(frame: pl.DataFrame, kind: pl.Expr, kinds: tuple[str, ...]) -> Rows:
    """Jobs of each profile by kind; empty if the kind of no job is known."""
    known = frame.select(_PROFILE, kind.alias("kind")).filter(pl.col("kind").is_not_null())
    if known.is_empty():
        return []
    counts = (pl.col("kind").eq(name).sum().alias(name) for name in kinds)
    return known.group_by(_PROFILE).agg(counts).sort(_PROFILE).to_dicts()


def _type(frame: pl.DataFrame) -> pl.Expr:
    nodes = pl.coalesce("alloc_nodes", "req_nodes").fill_null(1)
    share = memory_of.cast(pl.Float64) * nodes / cpus
    median = frame.select(share.median()).item()
    if not median:
        return pl.lit(None, dtype=pl.String)
    return (
        pl.when(share > _FACTOR * median).then(pl.lit("memory")).when(share < median / _FACTOR).then(pl.lit("compute"))
        .when(share.is_not_null()).then(pl.lit("balanced"))
    )  # fmt: skip


def _activity(frame: pl.DataFrame) -> Rows:
    """Users of each profile by their total number of jobs."""
    known = frame.filter(pl.col("user").is_not_null())
    users = known.select(_PROFILE, "user", pl.len().over("user").alias("jobs")).unique()
    infrequent = pl.when(pl.col("jobs") <= FREQUENT).then(pl.lit("infrequent")).otherwise(pl.lit("frequent"))
    kind = pl.when(pl.col("jobs") == 1).then(pl.lit("new")).otherwise(infrequent)
    return _counts(users, kind, ("frequent", "infrequent", "new"))


def _outcomes(frame: pl.DataFrame, target: Target) -> Rows:
    """Completed jobs, and those that the target counts as failed; `by_outcome` counts every outcome."""
    ended = frame.filter(pl.col("outcome").is_not_null())
    bad = pl.col("outcome").is_in([str(outcome) for outcome in TARGETS[target]])
    rows = (
        ended.group_by(_PROFILE)
        .agg(
            pl.col("outcome").eq(str(Outcome.COMPLETED)).sum().alias("completed"),
            bad.sum().alias(str(target)),
        )
        .sort(_PROFILE)
        .to_dicts()
    )
    single = ended.group_by(_PROFILE, "outcome").len()
    for row in rows:
        labelled = row["completed"] + row[str(target)]
        row["share"] = row[str(target)] / labelled if labelled else None
        of = single.filter(pl.col(_PROFILE) == row[_PROFILE])
        found = dict(zip(of["outcome"], of["len"], strict=True))
        row["by_outcome"] = {str(outcome): found[outcome] for outcome in Outcome if outcome in found}
    return rows
