"""Rules about partitions: whether one exists and is open, who may use it, and its limits of nodes, CPUs and time."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tocsin.core.machine import Partition
from tocsin.core.units import format_duration
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach, Change, plural
from tocsin.limits.capacity import Capacity
from tocsin.limits.demand import Demand, Request
from tocsin.scripts.text import shortened

__all__ = [
    "ENFORCED",
    "array_breaches",
    "highest_index",
    "other_partitions",
    "partition_breaches",
    "unknown_partitions",
]


ENFORCED = frozenset(
    (
        *("time_above_partition", "nodes_above_partition", "nodes_below_partition"),
        *("account_not_allowed", "qos_not_allowed", "only_for_root"),
    )
)
"""What EnforcePartLimits=ALL asks of every partition that a job names (tried on 22.05)."""


@dataclass(frozen=True, slots=True)
class _Limit:
    kind: str
    level: Level
    broken: Callable[[Demand], bool]
    """By a demand with the limits of its partition."""
    explain: Callable[[Demand, Partition, Capacity], tuple[str, str]]
    """What is wrong, and what to do about it."""
    change: Callable[[Demand, Partition, Capacity], Change | None] = lambda _row, _partition, _capacity: None


def _nodes_above(row: Demand, partition: Partition, capacity: Capacity) -> tuple[str, str]:
    most = int(row["most_nodes"])
    allows = "allows a job" if partition.max_nodes == most else "has"
    more = other_partitions(capacity, row, lambda p: _most_nodes(p, capacity) >= row["asked_nodes"])
    return (
        f"requests {plural(row['asked_nodes'], 'node')}, but partition {partition.name} {allows} only {most}",
        f"request at most {most}{more}",
    )


def _range_above(row: Demand, partition: Partition, _capacity: Capacity) -> tuple[str, str]:
    text = f"requests up to {plural(row['end_of_range'], 'node')}, but partition {partition.name} allows a job only {partition.max_nodes}"
    return text, f"end the range of --nodes with {partition.max_nodes}, or use another partition"


def _nodes_below(row: Demand, partition: Partition, _capacity: Capacity) -> tuple[str, str]:
    least = partition.min_nodes
    text = f"requests {plural(row['asked_nodes'], 'node')}, but partition {partition.name} requires at least {least}"
    if row["fixed"]:
        return text, f"request at least {least} or use another partition"
    return text, "the job never starts if --nodes sets this number"


def _cpus_above(row: Demand, partition: Partition, capacity: Capacity) -> tuple[str, str]:
    asked, most = int(row["tasks"] * row["cpus"]), int(row["most_cpus"])
    more = other_partitions(capacity, row, lambda p: _most_cpus(p, capacity) >= asked)
    return (
        f"requests {asked:,} CPUs, but partition {partition.name} gives a job at most {most:,}",
        f"request at most {most:,}{more}",
    )


def _time_above(row: Demand, partition: Partition, capacity: Capacity) -> tuple[str, str]:
    asked, most = format_duration(row["time"]), format_duration(partition.max_time)
    more = other_partitions(capacity, row, lambda p: p.max_time is None or p.max_time >= row["time"])
    return (
        f"requests a time limit of {asked}, but partition {partition.name} allows at most {most}",
        f"request at most {most}{more}",
    )


def _least_time_above(row: Demand, partition: Partition, _capacity: Capacity) -> tuple[str, str]:
    least, usual = format_duration(row["time_min"]), format_duration(partition.default_time)
    return (
        f"has a minimum time of {least}, but partition {partition.name} gives it a time limit of {usual}",
        "set --time, too",
    )


def _fit_time(row: Demand, partition: Partition, _capacity: Capacity) -> Change | None:
    assert partition.max_time is not None, "it was exceeded"
    return ("time_limit" if row["time_min"] is None else "time_min", partition.max_time)


_LIMITS = (
    _Limit(
        "nodes_above_partition",
        Level.CRITICAL,
        lambda row: row["asked_nodes"] > row["most_nodes"],
        _nodes_above,
        lambda row, _p, _c: ("req_nodes", int(row["most_nodes"])) if row["most_nodes"] else None,
    ),
    _Limit(
        # Slurm does not give such a job fewer nodes, which it would take (seen on 22.05 and 26.05).
        "nodes_above_partition",
        Level.CRITICAL,
        lambda row: (
            not row["job_id"]
            and row["asked_nodes"] <= row["most_nodes"]
            and row["end_of_range"] > row["max_nodes"]
        ),
        _range_above,
    ),
    _Limit(
        "nodes_below_partition",
        Level.CRITICAL,
        lambda row: row["fixed"] is True and row["asked_nodes"] < row["min_nodes"],
        _nodes_below,
        lambda _row, partition, _c: ("req_nodes", partition.min_nodes or 1),
    ),
    _Limit(
        # without --nodes Slurm takes as many as the partition requires (seen on 22.05); a record does not show which
        "nodes_below_partition",
        Level.WARNING,
        lambda row: row["fixed"] is None and row["asked_nodes"] < row["min_nodes"],
        _nodes_below,
    ),
    _Limit(
        "cpus_above_partition",
        Level.CRITICAL,
        lambda row: (
            row["asked_nodes"] <= row["most_nodes"]
            and row["cpus"] * (row["block"] or 1) <= row["largest_cpus"]
            and row["tasks"] * row["cpus"] > row["most_cpus"]
        ),
        _cpus_above,
    ),
    _Limit(
        "time_min_above_default",
        Level.CRITICAL,
        lambda row: (
            row["time_min"] is not None
            and row["time_limit"] in (None, row["default_time"])
            and row["default_time"] < row["time_min"] <= row["most_time"]
        ),
        _least_time_above,
    ),
    _Limit(
        "time_above_partition",
        Level.CRITICAL,
        lambda row: row["time"] is not None and row["time"] > row["most_time"],
        _time_above,
        _fit_time,
    ),
)


def unknown_partitions(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    """Slurm refuses a list with an unknown name; for an accepted job, a partition may have been removed since."""
    for row in demand:
        if row["partition"] in capacity.partitions:
            continue
        name, known = row["partition"], ", ".join(sorted(capacity.partitions))
        blank = " (Slurm reads the blank as part of the name)" if name != name.strip() else ""
        yield Breach(
            row=row["row"],
            partition=name if row["job_id"] else None,
            kind="unknown_partition",
            text=f'requests partition "{name}", which cluster {capacity.machine.cluster} does not have{blank}',
            remedy=f"use one of {known}",
        )


def partition_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    """`demand` has the limits of its partitions."""
    for limit in _LIMITS:
        for row in demand:
            if limit.broken(row):
                partition = capacity.partitions[row["partition"]]
                change = limit.change(row, partition, capacity)
                text, remedy = limit.explain(row, partition, capacity)
                yield Breach.here(row, limit.kind, text, remedy, change, level=limit.level)
    for row in demand:
        partition = capacity.partitions[row["partition"]]
        if (partition.state or "UP").upper() != "UP":
            yield _closed(row, partition)
        if partition.requires_reservation and not row["reservation"] and not row["job_id"]:
            yield Breach.here(
                row,
                "reservation_required",
                f"requests partition {partition.name}, which requires a reservation, but names none",
                "add --reservation or use another partition",
            )
        if partition.root_only and row["user"] not in (None, "root") and not row["job_id"]:
            yield Breach.here(
                row,
                "only_for_root",
                f"requests partition {partition.name}, in which only root may submit jobs",
                "use another partition",
            )
        lists = (
            partition.allow_accounts,
            partition.deny_accounts,
            partition.allow_qos,
            partition.deny_qos,
            partition.allow_groups,
        )
        if any(lists) and not row["has_run_here"]:
            yield from _not_allowed(row, partition)


def _closed(row: Demand, partition: Partition) -> Breach:
    state = (partition.state or "UP").upper()
    if down := state == "DOWN":
        text = f"waits for partition {partition.name}, which is down"
        remedy = "wait until it is up, or use another partition"
    else:
        text = f"requests partition {partition.name}, which is {state} and accepts no jobs"
        remedy = "use another partition"
    return Breach.here(
        row,
        "partition_down" if down else "partition_closed",
        text,
        remedy,
        level=Level.WARNING if down else Level.CRITICAL,
    )


def _not_allowed(row: Demand, partition: Partition) -> Iterator[Breach]:
    """Users who have completed a job in this partition may use it, whatever its lists say.

    In newer releases, lists of accounts include their sub-accounts, and users have more groups than the one in their
    records: only Slurm knows both.
    """
    for what, allowed, denied, level in (
        ("account", partition.allow_accounts, partition.deny_accounts, Level.CRITICAL),
        ("qos", partition.allow_qos, partition.deny_qos, Level.CRITICAL),
        ("group", partition.allow_groups, (), Level.WARNING),
    ):
        value = row[what]
        if value is None or not (
            (allowed is not None and not _lists(allowed, value)) or _lists(denied, value)
        ):
            continue
        shown = what if what != "qos" else "QOS"
        listed = ", ".join(allowed or ())
        unless = ", unless the user is also in one of them" if what == "group" else ""
        yield Breach.here(
            row,
            f"{what}_not_allowed",
            f"uses {shown} {value}, but partition {partition.name} "
            + (f"only allows {listed}{unless}" if listed else "denies it"),
            f"use {'one of them' if listed else f'another {shown}'} or another partition",
            level=level,
        )


def _lists(names: Sequence[str], name: str) -> bool:
    return name.lower() in (each.lower() for each in names)


def array_breaches(asked: Sequence[Request], capacity: Capacity) -> Iterator[Breach]:
    """Slurm refuses indices from MaxArraySize up, however few tasks there are."""
    size = capacity.machine.max_array_size
    if size is None:
        return
    for row, request in enumerate(asked):
        array = request["array"]
        if array is None or len(array) >= 1_000_000:
            continue
        highest = highest_index(array)
        if highest >= size:
            yield Breach(
                row=row,
                kind="array_above_limit",
                text=f"requests array index {highest:,}, but this cluster allows at most {size - 1:,}",
                remedy="submit several smaller arrays, or let each task do more",
                evidence=(f"--array={shortened(array)}", f"MaxArraySize={size}"),
            )


def highest_index(array: str) -> int:
    """The largest index in the text of an array, such as 1-9:2%4."""
    plain = re.sub(r"[%:]\d*", "", array)
    return max((int(number) for number in re.findall(r"\d{1,18}", plain, re.ASCII)), default=0)


def other_partitions(capacity: Capacity, row: Demand, takes: Callable[[Partition], bool]) -> str:
    """Other open partitions that would take the job, as the end of a sentence."""
    found = [
        partition.name
        for partition in capacity.partitions.values()
        if partition.name != row["partition"]
        and (partition.state or "UP").upper() == "UP"
        and (row["reservation"] or not partition.requires_reservation)
        and (partition.allow_accounts is None or row["account"] in partition.allow_accounts)
        and row["account"] not in partition.deny_accounts
        and not partition.root_only
        and not _lists(partition.deny_qos, row["qos"] or "")
        and (partition.allow_qos is None or row["qos"] is None or _lists(partition.allow_qos, row["qos"]))
        and (partition.allow_groups is None or row["group"] in partition.allow_groups)
        and takes(partition)
    ]
    return (
        f" or use partition {', '.join(found[:3][:-1])}{' or ' * (len(found) > 1)}{found[:3][-1]}"
        if found
        else ""
    )


def _most_nodes(partition: Partition, capacity: Capacity) -> int:
    known = [
        n for n in (partition.nodes, partition.max_nodes, len(capacity.names[partition.name]) or None) if n
    ]
    return min(known, default=0)


def _most_cpus(partition: Partition, capacity: Capacity) -> int:
    sizes = sorted((node.cpus or 0 for node in capacity.nodes[partition.name]), reverse=True)
    return sum(sizes[: _most_nodes(partition, capacity)])
