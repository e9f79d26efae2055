"""Rules of the past: a time limit below what every earlier job of the kind needed, memory far below what they used."""

from collections.abc import Iterator

import polars as pl

from tocsin.core.units import UNLIMITED, format_duration, format_memory
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach, Thresholds

__all__ = ["KINDS", "READ", "precedent_breaches", "welcome"]

KINDS = {
    "script": "with this very script",
    "executable": "of this user with this executable",
    "name": "of this user with this name",
}
"""What makes jobs of one kind, the closest first; history's keys. Jobs alike in the limit itself cannot tell."""

SAME = "script"
"""The one key that is no guess. Who gives a job of the same name less time often gives it less to do: of the jobs whose
limit was below every earlier run of the user's, 97 % ran into it on SDSC-BLUE (146 jobs) but none of 10 on KTH-SP2. And of
those that asked for less than half of the name's largest peak, 5 % ran out of memory on the demo cluster, where 8 % of all
do. So only jobs with the very script can be critical, and only they speak for memory."""

_STATISTICS = ("completed", "elapsed_least", "elapsed_most", "memory_most")
_WELCOME = "place.completed"
READ = (_WELCOME, *(f"{key}.{name}" for key in KINDS for name in _STATISTICS))
"""What is asked of history."""
_MEGABYTE = 2**20


def precedent_breaches(jobs: pl.DataFrame, features: pl.DataFrame, by: Thresholds) -> Iterator[Breach]:
    """`features` are history's, row by row."""
    told = [key for key in KINDS if _read(key).issubset(features.columns)]
    if not told:
        return
    enough = {key: pl.col(f"{key}.completed").fill_null(0) >= by.completed for key in told}
    both = pl.concat(
        [
            jobs.select("time_limit", "req_memory").with_row_index("row"),
            features.select(
                pl.coalesce(pl.when(enough[key]).then(pl.lit(key)) for key in told).alias("key"),
                *(
                    pl.coalesce(
                        pl.when(enough[key]).then(pl.col(f"{key}.{name}").cast(pl.Float64)) for key in told
                    ).alias(name)
                    for name in _STATISTICS
                ),
            ),
        ],
        how="horizontal",
    )
    for row in both.filter(pl.col("time_limit") < pl.col("elapsed_least")).iter_rows(named=True):
        number, limit = int(row["completed"]), format_duration(row["time_limit"])
        least, most = (format_duration(int(row[f"elapsed_{end}"])) for end in ("least", "most"))
        advised = _advised_time(row["elapsed_most"], by.margin)
        yield Breach(
            row=row["row"],
            kind="time_below_every_run",
            level=Level.CRITICAL if row["key"] == SAME and number >= by.sure else Level.WARNING,
            text=f"asks for a time limit of {limit}, but all {number} completed jobs {KINDS[row['key']]} ran longer "
            f"({least} to {most}); ask for {format_duration(advised)}{_unless(row['key'])}",
            evidence=(f"time limit {limit}", f"shortest of {number} completed: {least}", f"longest: {most}"),
            change=("time_limit", advised),
        )
    little = (
        (pl.col("key") == SAME)
        & (pl.col("req_memory") > 0)
        & (pl.col("req_memory") < by.memory_share * pl.col("memory_most"))
    )
    for row in both.filter(little).iter_rows(named=True):
        number, asked = int(row["completed"]), _size(row["req_memory"])
        advised = -(-int(row["memory_most"] * by.margin) // _MEGABYTE) * _MEGABYTE
        yield Breach(
            row=row["row"],
            kind="memory_below_past_peak",
            level=Level.WARNING,
            text=f"asks for {asked} on each node, but of {number} completed jobs {KINDS[row['key']]} one task alone "
            f"used {_size(int(row['memory_most']))}; ask for {_size(advised)}",
            evidence=(
                f"memory asked for {asked}",
                f"largest peak of {number} completed: {_size(int(row['memory_most']))}",
            ),
            change=("req_memory", advised),
        )


def _read(key: str) -> set[str]:
    return {f"{key}.{name}" for name in _STATISTICS}


def welcome(features: pl.DataFrame) -> pl.Series:
    """Whether the user has had a job complete in this partition."""
    if _WELCOME not in features.columns:
        return pl.repeat(False, features.height, eager=True)
    return (features[_WELCOME] > 0).fill_null(False)


def _unless(key: str) -> str:
    return " or more" if key == SAME else ", or leave it if this one has less to do"


def _advised_time(longest: float, margin: float) -> int:
    """In whole minutes, as Slurm counts."""
    return min(-(-int(longest * margin) // 60) * 60, UNLIMITED)


def _size(amount: int) -> str:
    return format_memory(-(-amount // _MEGABYTE) * _MEGABYTE)
