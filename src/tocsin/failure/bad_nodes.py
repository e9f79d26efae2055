"""Nodes on which more jobs failed recently than chance explains: those a job runs on, and those it should exclude."""

from collections.abc import Sequence
from functools import lru_cache
from math import exp, lgamma, log

import polars as pl

from tocsin.core.detector import Known
from tocsin.core.errors import NodeListError
from tocsin.core.machine import Machine
from tocsin.core.nodelist import expand_nodes
from tocsin.core.stages import Stage
from tocsin.core.verdict import Avoid, Nodes
from tocsin.failure.history_features import nodes_by_job

__all__ = ["bad_nodes", "nodes_of_jobs", "partition_nodes"]

CHANCE = 0.01
"""A node is flagged if chance alone would flag any of the known nodes with at most this probability (Bonferroni)."""
FEWEST = 3
"""Failures; fewer never count against a node."""
_MOST_NAMED = 20


def nodes_of_jobs(jobs: pl.DataFrame, past: Known, *, stage: Stage) -> list[Nodes | None]:
    """For each job, which of its nodes to avoid; None if its nodes are not known at this stage."""
    found: list[Nodes | None] = [None] * jobs.height
    if stage is Stage.SUBMIT or jobs["node_list"].null_count() == jobs.height:
        return found
    asked = nodes_by_job(jobs, stage)
    rows = asked["row"].to_list()
    for row in rows:
        found[row] = Nodes()
    for place, _, avoid in _flagged(asked, past):
        nodes = found[rows[place]]
        assert nodes is not None, "it was asked for"
        nodes.avoid.append(avoid)
    return found


def bad_nodes(names: Sequence[str], at: int, past: Known) -> list[Avoid]:
    """Which of these nodes fail jobs now, the worst first."""
    asked = pl.DataFrame({"at": [at] * len(names), "node": names}, schema={"at": pl.Int64, "node": pl.String})
    found = _flagged(asked, past)
    found.sort(key=lambda each: (each[1], each[2].node))
    return [avoid for _, _, avoid in found[:_MOST_NAMED]]


def partition_nodes(machine: Machine | None, partition: str | None) -> list[str]:
    """The nodes that a job may get in its partitions; by default, in the cluster's default partition."""
    if machine is None:
        return []
    wanted = set(partition.split(",")) if partition else {p.name for p in machine.partitions if p.default}
    listed = [p.node_list for p in machine.partitions if p.name in wanted and p.node_list]
    named = [name for text in listed for name in _expanded(text)]
    named += [node.name for node in machine.nodes if wanted.intersection(node.partitions)]
    return sorted(set(named))


@lru_cache(maxsize=64)
def _expanded(text: str) -> tuple[str, ...]:
    try:
        return tuple(expand_nodes(text))
    except NodeListError:
        return ()


def _flagged(asked: pl.DataFrame, past: Known) -> list[tuple[int, float, Avoid]]:
    """Each with its index in `asked` and its probability by chance."""
    if asked.is_empty():
        return []
    outcomes = past.node_outcomes(asked)
    counts = zip(outcomes["failed"].to_list(), outcomes["crashes"].to_list(), strict=True)
    places = [place for place, each in enumerate(counts) if max(count or 0 for count in each) >= FEWEST]
    if not places:  # as on most clusters on most days
        return []
    found = []
    for place, row in zip(places, asked.hstack(outcomes)[places].iter_rows(named=True), strict=True):
        by_failures = _tail(row["failed"], row["expected"])
        by_crashes = _tail(row["crashes"], row["crashes_expected"])
        chance = 2 * min(by_failures, by_crashes) * max(row["nodes"], 1)  # two tests for each node
        if chance <= CHANCE:
            why = _crashed(row) if by_crashes < by_failures else _failed(row)
            found.append((place, chance, Avoid(node=row["node"], why=why)))
    return found


def _failed(row: dict[str, float]) -> str:
    return (
        f"{row['failed']} of the {row['ended']} jobs that ended on it in the last 7 days failed, but only "
        f"{row['expected']:.1f} were expected of these jobs"
    )


def _crashed(row: dict[str, float]) -> str:
    return (
        f"it crashed {row['crashes']} times under the {row['ended']} jobs that ended on it in the last 7 days, but only "
        f"{row['crashes_expected']:.1f} were expected"
    )


def _tail(number: int, mean: float) -> float:
    """The probability of at least this many failures if `mean` are expected: Poisson never overstates the evidence.

    Failures are independent trials with probabilities known beforehand; their sum has less variance than Poisson.
    """
    if number < FEWEST or number <= mean:
        return 1.0
    if mean <= 0:
        return 0.0
    total, term = 0.0, exp(-mean + number * log(mean) - lgamma(number + 1))
    while number < 10_000 and term > total * 1e-9:
        total, number = total + term, number + 1
        term *= mean / number
    return min(1.0, total)
