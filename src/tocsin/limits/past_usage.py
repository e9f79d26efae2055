"""Rules about earlier jobs: a time limit below what all similar jobs needed, memory far below what they used."""

from collections.abc import Iterator
from functools import cache

import polars as pl

from tocsin.core.units import UNLIMITED, format_duration
from tocsin.core.verdict import Level
from tocsin.limits.breach import MEGABYTE, Breach, Thresholds, size

__all__ = ["READ", "SIMILAR", "has_run_here", "past_usage_breaches"]

SIMILAR = {
    "script": "with exactly this script",
    "executable": "of this user with this executable",
    "name": "of this user with this name",
}
"""Keys of history that make jobs similar, closest first. Jobs grouped by the limit itself would be no evidence."""

SAME = "script"
"""The only certain key. Users who give a job of the same name less time often give it less to do: of the jobs whose limit
was below all earlier runs of the user, 97 % timed out on SDSC-BLUE (146 jobs) but none of 10 on KTH-SP2. Of those that
requested less than half of the largest peak by name, 5 % ran out of memory on the demo cluster, where 8 % of all do. So
only jobs with the same script can be critical, and only they count for memory."""

_STATISTICS = ("completed", "elapsed_least", "elapsed_most", "memory_most")
_COMPLETED_HERE = "place.completed"
READ = (_COMPLETED_HERE, *(f"{key}.{name}" for key in SIMILAR for name in _STATISTICS))
"""The features read from history."""

_SHORT = pl.col("time_limit") < pl.col("elapsed_least")


def past_usage_breaches(jobs: pl.DataFrame, features: pl.DataFrame, by: Thresholds) -> Iterator[Breach]:
    """`features` are history's, row by row."""
    known = tuple(key for key in SIMILAR if f"{key}.completed" in features.columns)
    if not known:
        return
    both = pl.concat(
        [jobs[["time_limit", "req_memory"]], features.select(_closest(known, by.completed))],
        how="horizontal",
    ).with_row_index("row")
    little = (
        (pl.col("key") == SAME)
        & (pl.col("req_memory") > 0)
        & (pl.col("req_memory") < by.memory_share * pl.col("memory_most"))
    )
    low = both.filter(_SHORT | little)
    if low.is_empty():
        return
    for row in low.filter(_SHORT).iter_rows(named=True):
        number, limit = int(row["completed"]), format_duration(row["time_limit"])
        least, most = (format_duration(int(row[f"elapsed_{end}"])) for end in ("least", "most"))
        advised = min(
            -(-int(row["elapsed_most"] * by.margin) // 60) * 60, UNLIMITED
        )  # whole minutes, as in Slurm
        unless = " or more" if row["key"] == SAME else ", or keep it if this job has less to do"
        yield Breach(
            row=row["row"],
            kind="time_below_every_run",
            level=Level.CRITICAL if row["key"] == SAME and number >= by.sure else Level.WARNING,
            text=f"requests a time limit of {limit}, but all {number} completed jobs {SIMILAR[row['key']]} ran longer "
            f"({least} to {most})",
            remedy=f"request {format_duration(advised)}{unless}",
            evidence=(f"time limit {limit}", f"shortest of {number} completed: {least}", f"longest: {most}"),
            change=("time_limit", advised),
        )
    for row in low.filter(little).iter_rows(named=True):
        number, asked = int(row["completed"]), size(row["req_memory"])
        advised = -(-int(row["memory_most"] * by.margin) // MEGABYTE) * MEGABYTE
        yield Breach(
            row=row["row"],
            kind="memory_below_past_peak",
            level=Level.WARNING,
            text=f"requests {asked} on each node, but the largest of {number} completed jobs {SIMILAR[row['key']]} "
            f"used {size(row['memory_most'])}",
            remedy=f"request {size(advised)}",
            evidence=(
                f"requested memory {asked}",
                f"largest peak of {number} completed: {size(row['memory_most'])}",
            ),
            change=("req_memory", advised),
        )


@cache
def _closest(known: tuple[str, ...], completed: int) -> list[pl.Expr]:
    """The statistics of the closest key with enough completed jobs, and that key; built once for all jobs."""
    enough = {key: pl.col(f"{key}.completed").fill_null(0) >= completed for key in known}
    return [
        pl.coalesce(pl.when(enough[key]).then(pl.lit(key)) for key in known).alias("key"),
        *(
            pl.coalesce(
                pl.when(enough[key]).then(pl.col(f"{key}.{name}").cast(pl.Float64)) for key in known
            ).alias(name)
            for name in _STATISTICS
        ),
    ]


def has_run_here(features: pl.DataFrame) -> pl.Series:
    """Whether the user has completed a job in this partition."""
    if _COMPLETED_HERE not in features.columns:
        return pl.repeat(False, features.height, eager=True)
    return pl.Series([bool(number) for number in features.get_column(_COMPLETED_HERE).to_list()])
