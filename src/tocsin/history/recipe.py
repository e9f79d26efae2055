"""The keys and statistics of history, declared as data; replay and ledger compute the same from them."""

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
"""Shares are told over the last so many outcomes, besides all of them."""
RECENT = 5
"""Means of used over requested are told over the last so many outcomes."""

CLASSES: Mapping[Outcome, int] = MappingProxyType({outcome: place for place, outcome in enumerate(Outcome)})
"""Outcomes as small numbers, in the order of their definition."""


@dataclass(frozen=True, slots=True)
class Key:
    """Jobs with the same values in these fields share a history; without a value in the first they have none."""

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
    Key("script", ("script",), "with this very script"),
    Key("place", ("user", "partition"), "of this user in this partition"),
    Key("size", ("user", "req_cpus"), "of this user with so many CPUs"),
    Key("limit", ("user", "time_limit"), "of this user with this time limit"),
    Key("shape", ("user", "req_cpus", "req_memory", "time_limit"), "of this user with the same request"),
    Key(
        "twin",
        ("user", "name", "executable", "partition", "req_cpus", "req_memory", "time_limit"),
        "of this user with the same name and request",
    ),
)


OWN_KEYS = tuple(key for key in KEYS if "user" in key.fields)
"""Keys for which the jobs of the user are all that has to be read."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """One number that is known of a key at a moment; absent where there is nothing to count."""

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
    Statistic("timeout", "share of all outcomes that ran out of time"),
    Statistic("out_of_memory", "share of all outcomes that ran out of memory"),
    Statistic("node", "share of all outcomes that a node spoiled"),
    Statistic("last", "the last outcome, as a number"),
    Statistic("streak", "how many in a row ended like the last one: above zero unsuccessful, below zero not"),
    Statistic("since", "seconds since the last outcome became known"),
    Statistic("since_unsuccessful", "seconds since the last unsuccessful outcome became known"),
    Statistic("since_completed", "seconds since the last completion became known"),
    Statistic("time_used", "run time over time limit, mean of the last 5 that have both"),
    Statistic("memory_used", "peak memory over memory asked for, mean of the last 5 that have both"),
    Statistic("completed", "completed jobs known so far"),
    Statistic("elapsed_last", "run time of the last job that completed"),
    Statistic("elapsed_least", "shortest run time of those that completed"),
    Statistic("elapsed_most", "longest run time of those that completed"),
    Statistic("memory_most", "largest peak memory of those that completed"),
    Statistic("elapsed_unsuccessful", "run time of the last job that was unsuccessful"),
    Statistic("submitted", "jobs submitted before this one"),
    Statistic("submitted_hour", "of them in the last hour"),
    Statistic("submitted_day", "of them in the last 24 hours"),
    Statistic("since_submitted", "seconds since the last submission"),
    Statistic("running", "jobs that run now, as far as is known"),
    Statistic("pending", "jobs that wait now, as far as is known"),
)

FAILED = frozenset(CLASSES[outcome] for outcome in TARGETS[Target.FAILED])
UNSUCCESSFUL = frozenset(CLASSES[outcome] for outcome in TARGETS[Target.UNSUCCESSFUL])
COMPLETED = CLASSES[Outcome.COMPLETED]
COUNTED = UNSUCCESSFUL | {COMPLETED}
"""Outcomes that count: the others (preempted, requeued, …) say nothing of the job, as for a target."""
TIMEOUT = frozenset({CLASSES[Outcome.TIMEOUT]})
OUT_OF_MEMORY = frozenset({CLASSES[Outcome.OUT_OF_MEMORY]})
NODE = frozenset({CLASSES[Outcome.NODE_FAIL], CLASSES[Outcome.BOOT_FAIL]})


def column(key: str, statistic: str) -> str:
    """The name of a feature: `user.failed_last10`."""
    return f"{key}.{statistic}"


def columns() -> list[str]:
    return [column(key.name, statistic.name) for key in KEYS for statistic in STATISTICS]
