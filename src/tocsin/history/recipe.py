"""The keys and statistics of history as data; replay and ledger both compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tocsin.core.outcomes import TARGETS, Outcome, Target

__all__ = [
    "CLASSES",
    "KEYS",
    "LAST",
    "RECENT",
    "STATISTICS",
    "WEEK",
    "Key",
    "Statistic",
    "column",
    "columns",
]

WEEK = 7 * 86400
LAST = (3, 10, 40)
"""Shares are computed over these numbers of latest outcomes, and over all."""
RECENT = 5
"""Means of used over requested are computed over this number of latest outcomes."""

CLASSES: Mapping[Outcome, int] = MappingProxyType({outcome: place for place, outcome in enumerate(Outcome)})
"""Outcomes as small integers, in the order of their definition."""


@dataclass(frozen=True, slots=True)
class Key:
    """Jobs with the same values in these fields share a history; a job without a value in the first has none."""

    name: str
    fields: tuple[str, ...]
    words: str


KEYS: Sequence[Key] = (
    Key("cluster", ("cluster",), "on this cluster"),
    Key("user", ("user",), "of this user"),
    Key("account", ("account",), "of this account"),
    Key("partition", ("partition",), "in this partition"),
    Key("name", ("user", "name"), "of this user with this name"),
    Key("executable", ("executable", "user"), "of this user with this executable"),
    Key("script", ("script",), "with the same script"),
    Key("place", ("user", "partition"), "of this user in this partition"),
    Key("size", ("user", "req_cpus"), "of this user with this number of CPUs"),
    Key("limit", ("user", "time_limit"), "of this user with this time limit"),
    Key("shape", ("user", "req_cpus", "req_memory", "time_limit"), "of this user with the same request"),
    Key(
        "twin",
        ("user", "name", "executable", "partition", "req_cpus", "req_memory", "time_limit"),
        "of this user with the same name and request",
    ),
)


OWN_KEYS = tuple(key for key in KEYS if "user" in key.fields)
"""Keys that need only the jobs of the user."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """One number about a key at an instant; null if there is nothing to count."""

    name: str
    doc: str


def _shares(what: str) -> list[Statistic]:
    counts = [Statistic(f"{what}_last{n}", f"share {what} of the last {n} outcomes") for n in LAST]
    return [
        Statistic(f"{what}", f"share {what} of all outcomes"),
        *counts,
        Statistic(f"{what}_week", f"share {what} of the outcomes of the last 7 days"),
    ]


STATISTICS: Sequence[Statistic] = (
    Statistic("ended", "outcomes known so far"),
    Statistic("ended_week", "outcomes that became known in the last 7 days"),
    *_shares("failed"),
    *_shares("unsuccessful"),
    Statistic("timeout", "share of all outcomes that were timeouts"),
    Statistic("out_of_memory", "share of all outcomes that were out of memory"),
    Statistic("node", "share of all outcomes that were node failures"),
    Statistic("last", "code of the last outcome"),
    Statistic(
        "streak", "length of the latest run of equal outcomes: positive if unsuccessful, else negative"
    ),
    Statistic("since", "seconds since the last outcome became known"),
    Statistic("since_unsuccessful", "seconds since the last unsuccessful outcome became known"),
    Statistic("since_completed", "seconds since the last completion became known"),
    Statistic("time_used", "run time over time limit, mean of the last 5 that have both"),
    Statistic("memory_used", "peak memory over memory requested, mean of the last 5 that have both"),
    Statistic("completed", "completed jobs known so far"),
    Statistic("elapsed_last", "run time of the last completed job"),
    Statistic("elapsed_least", "shortest run time of completed jobs"),
    Statistic("elapsed_most", "longest run time of completed jobs"),
    Statistic("memory_most", "largest peak memory of completed jobs"),
    Statistic("elapsed_unsuccessful", "run time of the last unsuccessful job"),
    Statistic("submitted", "jobs submitted before this one"),
    Statistic("submitted_hour", "jobs submitted in the last hour"),
    Statistic("submitted_day", "jobs submitted in the last 24 hours"),
    Statistic("since_submitted", "seconds since the last submission"),
    Statistic("running", "jobs running now, as far as is known"),
    Statistic("pending", "jobs waiting now, as far as is known"),
)

FAILED = frozenset(CLASSES[outcome] for outcome in TARGETS[Target.FAILED])
UNSUCCESSFUL = frozenset(CLASSES[outcome] for outcome in TARGETS[Target.UNSUCCESSFUL])
COMPLETED = CLASSES[Outcome.COMPLETED]
COUNTED = UNSUCCESSFUL | {COMPLETED}
"""Outcomes that count; the others (preempted, requeued, …) are ignored, as for targets."""
TIMEOUT = frozenset({CLASSES[Outcome.TIMEOUT]})
OUT_OF_MEMORY = frozenset({CLASSES[Outcome.OUT_OF_MEMORY]})
NODE = frozenset({CLASSES[Outcome.NODE_FAIL], CLASSES[Outcome.BOOT_FAIL]})


def column(key: str, statistic: str) -> str:
    """The name of a feature: `user.failed_last10`."""
    return f"{key}.{statistic}"


def columns() -> list[str]:
    return [column(key.name, statistic.name) for key in KEYS for statistic in STATISTICS]
