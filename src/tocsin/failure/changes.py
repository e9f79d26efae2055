"""Changes of a request that evidence supports: time, memory, nodes to exclude, array tasks to run first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.core.errors import NodeListError, UnitError
from tocsin.core.ids import array_size, array_tasks
from tocsin.core.machine import Machine, Partition
from tocsin.core.nodelist import expand_nodes, fold_nodes
from tocsin.core.units import UNLIMITED, format_duration, rounded_memory
from tocsin.core.verdict import Avoid, Resources
from tocsin.failure.bad_nodes import partition_nodes
from tocsin.failure.findings import above_request
from tocsin.failure.shortages import Shortage, nice_memory, nice_time, shown_memory
from tocsin.history import recipe
from tocsin.scripts.submission import Submission

__all__ = ["Change", "Evidence", "changes"]

FAR_BELOW = 4.0
"""A request of at least this many times the bound is far too large."""
LEFT = 2.0
"""The advised request is this many times the bound, and more than was ever used."""
TIME_MORE, MEMORY_MORE = 1.1, 1.2
SHORT_TIME = 3600
LITTLE_MEMORY = 2**30
"""Smaller requests are not worth lowering."""
FEWEST = 20
"""Completed jobs of a kind needed to advise less."""
LOST = 0.1
"""Share of a kind that ran out, needed to advise a bound above the request."""
BIG_ARRAY = 10
TRY_FIRST = 3
FAILED_LATELY = 0.5
"""Among the last ten jobs of the kind."""
_KINDS = ("script", "executable", "name")
"""Keys of history whose jobs are of one kind."""
_WORDS = {key.name: key.words for key in recipe.KEYS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one job besides its request."""

    history: Mapping[str, Any]
    """Its statistics of the past."""
    resources: Resources | None = None
    shortages: Mapping[str, Shortage] = field(default_factory=dict)
    """By field of the request."""
    bad_nodes: Sequence[Avoid] = ()
    """In its partition, the worst first."""
    machine: Machine | None = None
    submission: Submission | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    field: str
    value: int | str
    why: str
    asks_model: bool = True
    """Whether the model rates it: the model has no features of excluded nodes or parts of an array, and its own
    expectations need no second opinion."""
    less: bool = False
    """Whether it requests less, which does not lower the risk."""


def changes(row: Mapping[str, Any], evidence: Evidence) -> list[Change]:
    """For a job that has not started; `row` has the fields of the job."""
    return [*_time(row, evidence), *_memory(row, evidence), *_nodes(row, evidence), *_array(row, evidence)]


def _time(row: Mapping[str, Any], evidence: Evidence) -> Iterator[Change]:
    need = evidence.resources.runtime_seconds if evidence.resources else None
    asked, most = row["time_limit"], _most_time(evidence.machine, row["partition"])
    if short := evidence.shortages.get("time_limit"):
        yield from _more("time_limit", asked, short.value, most, short.text)
        return
    if need is None or not asked or not 0 < asked < UNLIMITED:
        return
    shown = f"95 % of such jobs that complete need at most {format_duration(need.p95)}"
    if need.p95 > asked and (lost := _lost(evidence.history, "timeout")):
        why = f"requests {format_duration(asked)}, but {lost} ran out of time, and {shown}"
        yield from _more("time_limit", asked, nice_time(need.p95 * TIME_MORE), most, why)
    elif text := above_request(evidence.resources).get("time_limit"):
        yield from _more("time_limit", asked, nice_time(need.p95 * TIME_MORE), most, text, asks_model=False)
    elif asked >= max(FAR_BELOW * need.p95, SHORT_TIME) and _idle(evidence.history, "time_used"):
        longest = _most(evidence.history, "elapsed_most")
        why = f"requests {format_duration(asked)}, but {shown}; a shorter limit lets the job start sooner"
        enough = nice_time(max(need.p95 * LEFT, longest * TIME_MORE))
        yield from _less("time_limit", asked, enough, why)


def _memory(row: Mapping[str, Any], evidence: Evidence) -> Iterator[Change]:
    need = evidence.resources.memory_bytes if evidence.resources else None
    asked, most = row["req_memory"], _most_memory(evidence.machine, row["partition"])
    if short := evidence.shortages.get("req_memory"):
        yield from _more("req_memory", asked, short.value, most, short.text)
        return
    if need is None or not asked or not 0 < asked < UNLIMITED:
        return
    shown = f"95 % of such jobs that complete need at most {rounded_memory(need.p95)} per node"
    if need.p95 > asked and (lost := _lost(evidence.history, "out_of_memory")):
        why = f"requests {shown_memory(asked)} per node, but {lost} ran out of memory, and {shown}"
        yield from _more("req_memory", asked, nice_memory(need.p95 * MEMORY_MORE), most, why)
    elif text := above_request(evidence.resources).get("req_memory"):
        yield from _more(
            "req_memory", asked, nice_memory(need.p95 * MEMORY_MORE), most, text, asks_model=False
        )
    elif (
        asked >= max(FAR_BELOW * need.p95, LITTLE_MEMORY)
        and (row["req_tasks"] or 1) == 1  # the peak is for one task
        and _idle(evidence.history, "memory_used")
        and not _most(evidence.history, "out_of_memory")
    ):
        peak = _most(evidence.history, "memory_most")
        why = f"requests {shown_memory(asked)} per node, but {shown}; the rest would be wasted"
        yield from _less("req_memory", asked, nice_memory(max(need.p95 * LEFT, peak * MEMORY_MORE)), why)


def _more(
    field: str, asked: int | None, wanted: int, most: int, why: str, *, asks_model: bool = True
) -> Iterator[Change]:
    """Never beyond what the partition allows."""
    value = min(wanted, most)
    if value > (asked or 0):
        limited = (
            "; its partition allows no more: make the job smaller or use another partition"
            if most < wanted
            else ""
        )
        yield Change(field=field, value=value, why=why + limited, asks_model=asks_model)


def _less(field: str, asked: int, enough: int, why: str) -> Iterator[Change]:
    if enough <= asked / 2:
        yield Change(field=field, value=enough, why=why, less=True)


def _nodes(row: Mapping[str, Any], evidence: Evidence) -> Iterator[Change]:
    if not evidence.bad_nodes:
        return
    try:
        excluded = set(expand_nodes(row["exclude_nodes"] or ""))
        wanted = set(expand_nodes(row["req_node_list"] or ""))
    except NodeListError:
        return
    there = set(partition_nodes(evidence.machine, row["partition"]))
    bad = [avoid for avoid in evidence.bad_nodes if avoid.node not in excluded | wanted]
    left = len(there - excluded) - len(bad)
    if not bad or left < max(row["req_nodes"] or 1, len(there) // 2):
        return  # if half of the nodes would go, the nodes are not the problem
    yield Change(
        field="exclude_nodes",
        value=fold_nodes(excluded | {avoid.node for avoid in bad}),
        asks_model=False,
        why="; ".join(f"{avoid.node}: {avoid.why}" for avoid in bad[:3])
        + (f"; and {len(bad) - 3} more" if len(bad) > 3 else ""),
    )


def _array(row: Mapping[str, Any], evidence: Evidence) -> Iterator[Change]:
    spec, tasks = row["array"], row["array_tasks"] or 0
    if not spec or row["task"] is not None or tasks < BIG_ARRAY:
        return
    for key in _KINDS:
        share = evidence.history.get(recipe.column(key, "failed_last10"))
        ended = int(evidence.history.get(recipe.column(key, "ended")) or 0)
        if share is None or ended < TRY_FIRST:
            continue
        if share >= FAILED_LATELY and (first := _first_tasks(spec)):
            number = min(ended, 10)
            yield Change(
                field="array",
                value=first,
                asks_model=False,
                why=f"{round(share * number)} of the last {number} jobs {_WORDS[key]} failed; run {TRY_FIRST} of the "
                f"{tasks:,} tasks first and submit the others once they complete",
            )
        return


def _first_tasks(spec: str) -> str | None:
    try:
        if array_size(spec) > 1_000_000:
            return None
        first = array_tasks(spec)[:TRY_FIRST]
    except UnitError:
        return None
    whole = first == list(range(first[0], first[0] + len(first)))
    return f"{first[0]}-{first[-1]}" if whole and len(first) > 1 else ",".join(map(str, first))


def _lost(history: Mapping[str, Any], statistic: str) -> str | None:
    """How many of the closest kind ran out, in words, unless they are few."""
    for key in _KINDS:
        ended, share = (history.get(recipe.column(key, name)) or 0.0 for name in ("ended", statistic))
        if ended >= TRY_FIRST:
            return (
                f"{round(share * ended)} of {ended:.0f} earlier jobs {_WORDS[key]}" if share >= LOST else None
            )
    return None


def _idle(history: Mapping[str, Any], statistic: str) -> bool:
    """Whether many of the closest kind completed, and the latest used little of their request."""
    for key in _KINDS:
        if (history.get(recipe.column(key, "completed")) or 0.0) >= FEWEST:
            used = history.get(recipe.column(key, statistic))
            return used is not None and bool(used <= 1 / FAR_BELOW)
    return False


def _most(history: Mapping[str, Any], statistic: str) -> float:
    return max((history.get(recipe.column(key, statistic)) or 0.0 for key in _KINDS), default=0.0)


def _partitions(machine: Machine | None, partition: str | None) -> list[Partition]:
    wanted = partition.split(",") if partition else []
    known = machine.partitions if machine else ()
    return [p for p in known if (p.name in wanted if wanted else p.default)]


def _most_time(machine: Machine | None, partition: str | None) -> int:
    limits = [p.max_time if p.max_time is not None else UNLIMITED for p in _partitions(machine, partition)]
    return max(limits, default=UNLIMITED)


def _most_memory(machine: Machine | None, partition: str | None) -> int:
    """The most that a job may have on one node of its partitions, in whole megabytes as in requests."""
    found = []
    for part in _partitions(machine, partition):
        names = set(partition_nodes(machine, part.name))
        sizes = [node.memory for node in machine.nodes if node.name in names] if machine else []
        largest = max((size for size in sizes if size is not None), default=UNLIMITED)
        found.append(min(largest, part.max_memory_per_node or UNLIMITED))
    return max(found, default=UNLIMITED) // 2**20 * 2**20
