"""Rules about earlier jobs: a time limit below what all similar jobs needed, memory far below what they used."""

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin.core.units import UNLIMITED, format_duration
from tocsin.core.verdict import Level
from tocsin.limits.breach import MEGABYTE, Breach, Thresholds, size

__all__ = ["READ", "SIMILAR", "has_run_here", "past_usage_breaches"]

SIMILAR = {
    "script": "with exactly this script",
    "executable": "of this user with this executable",
    "name": "of this user with this name",
}
"""Keys of history that make jobs similar, closest first. Jobs grouped by the limit itself would not be evidence."""

SAME = "script"
"""The only reliable key. Users who give a job of the same name less time often give it less to do. Of 182 jobs on five
public logs whose limit was below all earlier runs with this name, 61 % did not complete; of the 89 with a limit below
three quarters of the shortest of ten runs or more, 81 % did not. Of those that requested less than half of the
largest peak by name, 5 % ran out of memory on the demo cluster, where 8 % of all do. Therefore only jobs with the same
script can be critical, and only they count for memory."""

_STATISTICS = ("completed", "elapsed_least", "elapsed_most", "memory_most")
_COMPLETED_HERE = "place.completed"
READ = (_COMPLETED_HERE, *(f"{key}.{name}" for key in SIMILAR for name in _STATISTICS))
"""The features read from history."""

History = Mapping[str, float | None]
"""The features of one job that were read."""


def past_usage_breaches(
    row: int, request: Mapping[str, Any], history: History, by: Thresholds
) -> Iterator[Breach]:
    """Compares the time limit and the memory of one job with the runs of the closest key that has enough of them."""
    enough = [key for key in SIMILAR if (history.get(f"{key}.completed") or 0) >= by.completed]
    if not enough:
        return
    limit, memory = request["time_limit"], request["req_memory"]
    completed, least, most, peak = (_first(history, enough, name) for name in _STATISTICS)
    number = int(completed or 0)
    needed = by.completed if enough[0] == SAME else by.sure
    share = 1.0 if enough[0] == SAME else by.time_share
    if (
        limit is not None
        and least is not None
        and most is not None
        and number >= needed
        and limit < share * least
    ):
        yield _short_time(row, enough[0], limit, number, (int(least), int(most)), by)
    if enough[0] == SAME and memory and peak is not None and 0 < memory < by.memory_share * peak:
        yield _little_memory(row, memory, number, peak, by)


def _first(history: History, keys: list[str], name: str) -> float | None:
    return next((value for key in keys if (value := history.get(f"{key}.{name}")) is not None), None)


def _short_time(row: int, key: str, limit: int, number: int, ran: tuple[int, int], by: Thresholds) -> Breach:
    asked, (least, most) = format_duration(limit), map(format_duration, ran)
    advised = min(-(-int(ran[1] * by.margin) // 60) * 60, UNLIMITED)  # whole minutes, as in Slurm
    unless = " or more" if key == SAME else ", or keep it if this job has less to do"
    return Breach(
        row=row,
        kind="time_below_every_run",
        level=Level.CRITICAL if key == SAME and number >= by.sure else Level.WARNING,
        text=f"requests a time limit of {asked}, but all {number} completed jobs {SIMILAR[key]} ran longer "
        f"({least} to {most})",
        remedy=f"request {format_duration(advised)}{unless}",
        evidence=(f"time limit {asked}", f"shortest of {number} completed: {least}", f"longest: {most}"),
        change=("time_limit", advised),
    )


def _little_memory(row: int, memory: int, number: int, peak: float, by: Thresholds) -> Breach:
    asked = size(memory)
    advised = -(-int(peak * by.margin) // MEGABYTE) * MEGABYTE
    return Breach(
        row=row,
        kind="memory_below_past_peak",
        level=Level.WARNING,
        text=f"requests {asked} on each node, but the largest of {number} completed jobs {SIMILAR[SAME]} "
        f"used {size(peak)}",
        remedy=f"request {size(advised)}",
        evidence=(
            f"requested memory {asked}",
            f"largest peak of {number} completed: {size(peak)}",
        ),
        change=("req_memory", advised),
    )


def has_run_here(history: History) -> bool:
    """Whether the user has completed a job in this partition."""
    return bool(history.get(_COMPLETED_HERE))
