"""Rules of the partition: whether it is there and open, who may use it, and its limits of nodes, CPUs and time."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tocsin.core.machine import Partition
from tocsin.core.units import format_duration
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach, Change
from tocsin.limits.capacity import Capacity

__all__ = ["array_breaches", "elsewhere", "partition_breaches", "unknown_partitions"]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    level: Level
    breaks: pl.Expr
    """Over the columns of `request.asked` and `Capacity.limits`."""
    say: Callable[[Row, Partition, Capacity], str]
    change: Callable[[Row, Partition, Capacity], Change | None] = lambda _row, _partition, _capacity: None


def _nodes_above(row: Row, partition: Partition, capacity: Capacity) -> str:
    most = int(row["most_nodes"])
    why = "allows a job" if partition.max_nodes == most else "has"
    more = elsewhere(capacity, row, lambda p: _most_nodes(p, capacity) >= row["asked_nodes"])
    return (
        f"asks for {_count(row['asked_nodes'], 'node')}, but partition {partition.name} {why} only {most}; "
        f"ask for at most {most}{more}"
    )


def _nodes_below(row: Row, partition: Partition, _capacity: Capacity) -> str:
    least = partition.min_nodes
    if row["fixed"]:
        return (
            f"asks for {_count(row['asked_nodes'], 'node')}, but partition {partition.name} takes jobs of {least} nodes "
            f"or more; ask for at least {least} or use another partition"
        )
    return (
        f"asks for {_count(row['asked_nodes'], 'node')}, and partition {partition.name} takes jobs of {least} nodes or "
        f"more; it never starts if its number of nodes is fixed by --nodes"
    )


def _cpus_above(row: Row, partition: Partition, capacity: Capacity) -> str:
    asked, most = int(row["tasks"] * row["cpus"]), int(row["most_cpus"])
    more = elsewhere(capacity, row, lambda p: _most_cpus(p, capacity) >= asked)
    return (
        f"asks for {asked:,} CPUs, but a job gets at most {most:,} in partition {partition.name}; "
        f"ask for at most {most:,}{more}"
    )


def _time_above(row: Row, partition: Partition, capacity: Capacity) -> str:
    asked, most = format_duration(row["time"]), format_duration(partition.max_time)
    more = elsewhere(capacity, row, lambda p: p.max_time is None or p.max_time >= row["time"])
    return (
        f"asks for a time limit of {asked}, but partition {partition.name} allows at most {most}; "
        f"ask for at most {most}{more}"
    )


def _fit_time(row: Row, partition: Partition, _capacity: Capacity) -> Change | None:
    assert partition.max_time is not None, "it was exceeded"
    return ("time_limit" if row["time_min"] is None else "time_min", partition.max_time)


RULES = (
    _Rule(
        "nodes_above_partition",
        Level.CRITICAL,
        pl.col("asked_nodes") > pl.col("most_nodes"),
        _nodes_above,
        lambda row, _p, _c: ("req_nodes", int(row["most_nodes"])) if row["most_nodes"] else None,
    ),
    _Rule(
        "nodes_below_partition",
        Level.CRITICAL,
        (pl.col("asked_nodes") < pl.col("min_nodes")) & pl.col("fixed"),
        _nodes_below,
        lambda _row, partition, _c: ("req_nodes", partition.min_nodes or 1),
    ),
    _Rule(
        # without --nodes Slurm takes as many as the partition wants (seen on 22.05); a record does not tell which it is
        "nodes_below_partition",
        Level.WARNING,
        (pl.col("asked_nodes") < pl.col("min_nodes")) & pl.col("fixed").is_null(),
        _nodes_below,
    ),
    _Rule(
        "cpus_above_partition",
        Level.CRITICAL,
        (pl.col("asked_nodes") <= pl.col("most_nodes"))
        & (pl.col("tasks") * pl.col("cpus") > pl.col("most_cpus")),
        _cpus_above,
    ),
    _Rule(
        "time_above_partition", Level.CRITICAL, pl.col("time") > pl.col("most_time"), _time_above, _fit_time
    ),
)


def unknown_partitions(asked: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    known = ", ".join(sorted(capacity.partitions))
    for row, name in (
        asked.filter(~pl.col("partition").is_in(list(capacity.partitions))).select("row", "partition").rows()
    ):
        yield Breach(
            row=row,
            kind="unknown_partition",
            level=Level.CRITICAL,
            text=f'asks for partition "{name}", which cluster {capacity.machine.cluster} does not have; use one of {known}',
            partition=name,
        )


def partition_breaches(asked: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """`asked` is joined with the limits of its partitions."""
    suspects = asked.filter(
        pl.any_horizontal(rule.breaks for rule in RULES)
    )  # one pass; most frames have none
    for rule in RULES if suspects.height else ():
        for row in suspects.filter(rule.breaks).iter_rows(named=True):
            partition = capacity.partitions[row["partition"]]
            yield Breach(
                row=row["row"],
                kind=rule.kind,
                level=rule.level,
                text=rule.say(row, partition, capacity),
                partition=partition.name,
                change=rule.change(row, partition, capacity),
            )
    for name in asked["partition"].unique():
        partition = capacity.partitions[name]
        if (partition.state or "UP").upper() != "UP":
            yield from _closed(asked.filter(pl.col("partition") == name), partition)
        if (
            partition.allow_accounts
            or partition.deny_accounts
            or partition.allow_qos
            or partition.allow_groups
        ):
            yield from _not_allowed(asked.filter(pl.col("partition") == name), partition)


def _closed(asked: pl.DataFrame, partition: Partition) -> Iterator[Breach]:
    state = (partition.state or "UP").upper()
    down = state == "DOWN"
    text = (
        f"waits for partition {partition.name}, which is down and starts no job until an administrator opens it"
        if down
        else f"asks for partition {partition.name}, which is {state} and takes no jobs; use another partition"
    )
    for row in asked["row"]:
        yield Breach(
            row=row,
            kind="partition_down" if down else "partition_closed",
            level=Level.WARNING if down else Level.CRITICAL,
            text=text,
            partition=partition.name,
        )


def _not_allowed(asked: pl.DataFrame, partition: Partition) -> Iterator[Breach]:
    """Who has had a job complete in this partition may use it, whatever its lists seem to say.

    Lists of accounts hold for the accounts below them in newer releases, and users have more groups than the one in
    their records: both are known to Slurm alone.
    """
    for what, allowed, denied, level in (
        ("account", partition.allow_accounts, partition.deny_accounts, Level.CRITICAL),
        ("qos", partition.allow_qos, (), Level.CRITICAL),
        ("group", partition.allow_groups, (), Level.WARNING),
    ):
        if allowed is None and not denied:
            continue
        name = pl.col(what).str.to_lowercase()
        outside = ~name.is_in([word.lower() for word in allowed]) if allowed is not None else pl.lit(False)
        barred = name.is_in([word.lower() for word in denied]) if denied else pl.lit(False)
        rows = asked.filter((outside | barred) & ~pl.col("welcome"))
        shown = what if what != "qos" else "QOS"
        listed = ", ".join(allowed or ())
        hint = " unless the user is in one of them too" if what == "group" else ""
        for row, value in rows.select("row", what).rows():
            yield Breach(
                row=row,
                kind=f"{what}_not_allowed",
                level=level,
                text=f"uses {shown} {value}, but partition {partition.name} "
                + (
                    f"is only for {listed}{hint}; use one of them"
                    if listed
                    else f"denies it; use another {shown}"
                )
                + " or another partition",
                partition=partition.name,
            )


def array_breaches(jobs: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """Slurm refuses indices from MaxArraySize on, however few tasks there are."""
    size = capacity.machine.max_array_size
    if size is None or jobs["array"].null_count() == jobs.height:
        return
    arrays = jobs.select(pl.col("array"), pl.int_range(pl.len()).alias("row")).filter(
        pl.col("array").is_not_null() & pl.col("array").str.len_chars().lt(1_000_000)
    )
    for array, row in arrays.rows():
        plain = re.sub(r"[%:]\d*", "", array)
        highest = max((int(number) for number in re.findall(r"\d{1,18}", plain, re.ASCII)), default=0)
        if highest >= size:
            yield Breach(
                row=row,
                kind="array_above_limit",
                level=Level.CRITICAL,
                text=f"asks for an array up to index {highest:,}, but this cluster allows indices up to {size - 1:,}; "
                f"submit several smaller arrays, or let each task do more",
                evidence=(f"--array={_short(array)}", f"MaxArraySize={size}"),
            )


def elsewhere(capacity: Capacity, row: Row, takes: Callable[[Partition], bool]) -> str:
    """The other open partitions that would take it, as the end of a sentence."""
    found = [
        partition.name
        for partition in capacity.partitions.values()
        if partition.name != row["partition"]
        and (partition.state or "UP").upper() == "UP"
        and (partition.allow_accounts is None or row["account"] in partition.allow_accounts)
        and row["account"] not in partition.deny_accounts
        and takes(partition)
    ]
    return f" or use partition {' or '.join(found[:3])}" if found else ""


def _most_nodes(partition: Partition, capacity: Capacity) -> int:
    told = [
        n for n in (partition.nodes, partition.max_nodes, len(capacity.names[partition.name]) or None) if n
    ]
    return min(told, default=0)


def _most_cpus(partition: Partition, capacity: Capacity) -> int:
    sizes = sorted((node.cpus or 0 for node in capacity.nodes[partition.name]), reverse=True)
    return sum(sizes[: _most_nodes(partition, capacity)])


def _count(number: float, what: str) -> str:
    return f"{int(number):,} {what}{'' if number == 1 else 's'}"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
