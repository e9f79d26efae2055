"""Rules of the nodes: whether any way to lay the tasks on a partition's nodes exists, and what stands against it."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import expand_nodes
from tocsin.core.units import format_memory
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach, Change
from tocsin.limits.capacity import PLENTY, Capacity
from tocsin.limits.partition_rules import elsewhere

__all__ = ["feature_breaches", "node_breaches", "node_list_breaches"]

Row = Mapping[str, Any]
MEGABYTE = 2**20
_FEW = 8


def node_breaches(asked: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """`asked` is joined with the limits of its partitions; too many nodes or CPUs were found there already."""
    known = sorted(capacity.features or ())
    possible = asked.filter(
        (pl.col("asked_nodes") <= pl.col("most_nodes"))
        & (pl.col("tasks") * pl.col("cpus") <= pl.col("most_cpus"))
        & (
            (pl.col("needs").list.set_difference(pl.lit(known, pl.List(pl.String))).list.len() == 0)
            | pl.lit(not known)
        )
    )
    if possible.height <= _FEW:  # a frame costs more than a look at each of a few jobs
        open_ = [not _on_one_node(row, capacity) for row in possible.iter_rows(named=True)]
        possible = possible.filter(pl.Series(open_, dtype=pl.Boolean)) if any(open_) else possible.clear()
    if not possible.height:
        return
    laid = _laid_out(possible, capacity)
    laid = laid.filter(~pl.col("fits") | ~pl.col("fits_now"))
    if not laid.height:
        return
    for row in laid.filter(~pl.col("fits")).iter_rows(named=True):
        kind, text, change = _why(row, capacity)
        yield Breach(
            row=row["row"],
            kind=kind,
            level=Level.CRITICAL,
            text=text,
            evidence=capacity.described[row["partition"]],
            partition=row["partition"],
            change=change,
        )
    for row in laid.filter(pl.col("fits") & ~pl.col("fits_now")).iter_rows(named=True):
        yield Breach(
            row=row["row"],
            kind="nodes_out_of_service",
            level=Level.WARNING,
            text=f"waits for {_wanted(row)}: not enough such nodes of partition {row['partition']} are in service; "
            "use another partition, or wait until they return",
            evidence=tuple(capacity.out_of_service(row["partition"])),
            partition=row["partition"],
        )


def _on_one_node(row: Row, capacity: Capacity) -> bool:
    """Whether it is plain that one node in service takes all of the job."""
    if row["asked_nodes"] != 1 or row["nodes"] != 1:
        return False
    wanted = row["tasks"] * row["cpus"]
    for kind in capacity.serving[row["partition"]]:
        cpus = min(kind.cpus, row["max_cpus_per_node"])
        memory = min(kind.memory, row["max_memory_per_node"], row["max_memory_per_cpu"] * cpus)
        if (
            wanted <= cpus
            and (row["memory"] is None or row["memory"] < memory)
            and row["gpus"] <= kind.gpus
            and (not kind.gpu_types or set(row["gpu_types"]) <= set(kind.gpu_types))
            and (kind.features is None or set(row["needs"]) <= set(kind.features))
        ):
            return True
    return False


def _laid_out(asked: pl.DataFrame, capacity: Capacity) -> pl.DataFrame:
    """Whether the tasks fit on the nodes there are, and on those that are in service now.

    Each kind of node holds so many tasks by its CPUs, memory, GPUs and features; the best nodes are taken first, as many
    as the job may have. CPUs and memory are taken as told for one job alone on the node: no smaller request could fail.
    """
    number = pl.col("node_cpus", "node_memory", "node_gpus", "number", "serving").cast(pl.Float64)
    both = asked.join(capacity.kinds.with_columns(number), on="partition", how="left")
    cpus = pl.min_horizontal("node_cpus", pl.col("max_cpus_per_node").cast(pl.Float64))
    memory = pl.min_horizontal(
        "node_memory",
        pl.col("max_memory_per_node").cast(pl.Float64),
        pl.col("max_memory_per_cpu").cast(pl.Float64) * cpus,
    )
    by_cpus = cpus // pl.col("cpus")
    by_memory = (
        pl.when(pl.col("memory").is_null() | (pl.col("exact") & (pl.col("memory") <= memory)))
        .then(pl.lit(float(PLENTY)))
        .when(pl.col("exact"))
        .then(0.0)
        .otherwise(memory // pl.col("task_memory"))
    )
    suits = (
        ((pl.col("gpus") == 0) | (pl.col("node_gpus") > 0))
        & (
            pl.col("gpu_types_right").is_null()
            | (pl.col("gpu_types_right").list.len() == 0)
            | (pl.col("gpu_types").list.set_difference("gpu_types_right").list.len() == 0)
        )
        & (pl.col("features").is_null() | (pl.col("needs").list.set_difference("features").list.len() == 0))
    )
    holds = pl.min_horizontal(by_cpus, by_memory, "tasks")
    places = (
        pl.when(~suits | (holds < pl.col("block").fill_null(1)))
        .then(0.0)
        .otherwise(pl.min_horizontal(holds, "block"))
    )
    most = pl.max_horizontal(
        "nodes",
        pl.when(pl.col("fixed").fill_null(False))
        .then(0.0)
        .otherwise(pl.min_horizontal("tasks", pl.col("most_nodes").cast(pl.Float64))),
    )
    both = both.with_columns(places=places, most=most).sort(
        "row", "partition", "places", descending=[False, False, True]
    )
    fits = [_enough(count, name) for count, name in (("number", "fits"), ("serving", "fits_now"))]
    found = both.group_by("row", "partition", maintain_order=True).agg(fits)
    return asked.join(found, on=("row", "partition"), how="left", maintain_order="left")


def _enough(count: str, name: str) -> pl.Expr:
    """Over the kinds of one job and partition, best first: room for all tasks and GPUs on at least so many nodes."""
    number, most = pl.col(count), pl.col("most").first()
    taken = (most - (number.cum_sum() - number)).clip(0, number)
    room = (taken * pl.col("places")).sum() >= pl.col("tasks").first()
    hosts = pl.when(pl.col("places") > 0).then(number).otherwise(0.0).sum() >= pl.col("nodes").first()
    # GPUs by the nodes with most of them, which need not be those with most room: an upper bound
    useful = pl.when(pl.col("places") > 0).then(number).otherwise(0.0)
    order = pl.col("node_gpus").arg_sort(descending=True)
    sorted_, gpus = useful.gather(order), pl.col("node_gpus").gather(order)
    held = ((most - (sorted_.cum_sum() - sorted_)).clip(0, sorted_) * gpus).sum()
    return (room & hosts & (held >= pl.col("gpus").first())).fill_null(True).alias(name)


def _why(row: Row, capacity: Capacity) -> tuple[str, str, Change | None]:
    """The simplest reason that stands by itself, else that no node has all at once."""
    partition, largest = row["partition"], capacity.largest[row["partition"]]
    cpus = int(row["cpus"] * (row["block"] or 1))
    memory = int(row["memory"] if row["exact"] else row["task_memory"]) if row["memory"] is not None else 0
    if cpus > largest.cpus:
        each = "for each task" if row["block"] is None or row["block"] == 1 else "on each node"
        more = elsewhere(capacity, row, lambda p: capacity.largest[p.name].cpus >= cpus)
        text = f"asks for {cpus} CPUs {each}, but a job gets at most {largest.cpus} on one node of partition {partition}"
        change = ("cpus_per_task", largest.cpus) if cpus == row["cpus"] else None
        return "cpus_above_any_node", f"{text}; ask for at most {largest.cpus}{more}", change
    if memory > largest.memory:
        each = "on each node" if row["exact"] else "for each task"
        most = _size(largest.memory // MEGABYTE * MEGABYTE)
        more = elsewhere(capacity, row, lambda p: capacity.largest[p.name].memory >= memory)
        text = f"asks for {_size(memory)} {each}, but a job gets at most {most} on one node of partition {partition}"
        return (
            "memory_above_any_node",
            f"{text}; ask for at most {most}{more}",
            ("req_memory", largest.memory // MEGABYTE * MEGABYTE) if row["exact"] else None,
        )
    if row["gpus"]:
        wanted = int(row["gpus"])
        at_most = int(row["nodes"] if row["exact"] else row["most_nodes"])
        there = sum(sorted((node.gpus for node in capacity.nodes[partition]), reverse=True)[:at_most])
        if not there:
            more = elsewhere(capacity, row, lambda p: 0 < capacity.largest[p.name].gpus < PLENTY)
            text = f"asks for {_gpus(row)}, but no node of partition {partition} has a GPU"
            return (
                "no_gpus",
                text + ("; " + more.removeprefix(" or ") if more else "; use a partition with GPUs"),
                None,
            )
        if wanted > there:
            place = "one node" if at_most == 1 else f"{at_most} nodes"
            more = elsewhere(capacity, row, lambda p: wanted <= capacity.largest[p.name].gpus < PLENTY)
            text = f"asks for {_gpus(row)}, but {place} of partition {partition} have at most {there}"
            if at_most == 1:
                text = text.replace("have", "has")
            return "gpus_above_partition", f"{text}; ask for at most {there}{more}", ("req_gpus", there)
    return (
        "too_few_such_nodes",
        f"asks for {_wanted(row)}, but partition {partition} does not have enough nodes that have all of it; "
        "ask for less, or use another partition",
        None,
    )


def _wanted(row: Row) -> str:
    """The request in words, without what is not asked for."""
    tasks, nodes = int(row["tasks"]), int(row["nodes"])
    words = [f"{tasks:,} task{'s' * (tasks != 1)} of {int(row['cpus'])} CPU{'s' * (row['cpus'] != 1)}"]
    if row["fixed"] or nodes > 1:
        words.append(f"on {nodes:,} node{'s' * (nodes != 1)}")
    if row["block"] is not None:
        words.append(f"with {int(row['block'])} on each")
    if row["memory"] is not None:
        words.append(
            f"with {_size(int(row['memory']))} on each node"
            if row["exact"]
            else f"with {_size(int(row['task_memory']))} each"
        )
    if row["gpus"]:
        words.append(f"and {_gpus(row)}")
    if row["needs"]:
        words.append(f"with the features {' and '.join(row['needs'])}")
    return " ".join(words)


def feature_breaches(asked: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """A feature that no node of the cluster has is refused, wherever it stands in the constraint."""
    if capacity.features is None or asked["constraints"].null_count() == asked.height:
        return
    for row, constraint in (
        asked.filter(pl.col("constraints").is_not_null()).select("row", "constraints").unique().rows()
    ):
        names = re.findall(r"(?<![\w*])[A-Za-z_][^&|\[\]()*,\s!]*", constraint[:10_000])
        if unknown := [name for name in names if name not in capacity.features]:
            known = ", ".join(sorted(capacity.features)[:20]) or "none"
            yield Breach(
                row=row,
                kind="unknown_feature",
                level=Level.CRITICAL,
                text=f"asks for the node feature {unknown[0]}, which no node of this cluster has; "
                f"change --constraint (there are: {known})",
                evidence=(f"--constraint={constraint[:200]}",),
            )


def node_list_breaches(asked: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """Nodes that must be had, or must not, against the nodes of the partition."""
    if asked["req_node_list"].null_count() == asked["exclude_nodes"].null_count() == asked.height:
        return
    listed = asked.filter(pl.col("req_node_list").is_not_null() | pl.col("exclude_nodes").is_not_null())
    for row in listed.iter_rows(named=True):
        partition = row["partition"]
        there = capacity.names[partition]
        try:
            wanted = set(expand_nodes(row["req_node_list"] or ""))
            excluded = set(expand_nodes(row["exclude_nodes"] or ""))
        except NodeListError:
            continue  # what cannot be read cannot be judged; sbatch refuses it by itself
        if not there:
            continue
        say = _teller(row, partition)
        if foreign := sorted(wanted - there):
            yield say(
                "node_not_in_partition",
                f"asks for node {foreign[0]}, which is not in partition {partition}; change --nodelist or the partition",
            )
        elif both := sorted(wanted & excluded):
            yield say(
                "node_wanted_and_excluded",
                f"asks for node {both[0]} and excludes it; remove it from --nodelist or from --exclude",
            )
        elif (left := len(there - excluded)) < row["nodes"] and len(there) >= row["nodes"]:
            yield say(
                "too_many_nodes_excluded",
                f"needs {int(row['nodes'])} node{'s' * (row['nodes'] != 1)} and excludes all but {left} of partition "
                f"{partition}; exclude fewer",
            )


def _teller(row: Row, partition: str) -> Callable[[str, str], Breach]:
    def say(kind: str, text: str) -> Breach:
        given = {"--nodelist": row["req_node_list"], "--exclude": row["exclude_nodes"]}
        evidence = tuple(f"{option}={value[:200]}" for option, value in given.items() if value)
        return Breach(
            row=row["row"], kind=kind, level=Level.CRITICAL, text=text, evidence=evidence, partition=partition
        )

    return say


def _gpus(row: Row) -> str:
    number = int(row["gpus"])
    kind = f" {'/'.join(row['gpu_types'])}" if row["gpu_types"] else ""
    return f"{number}{kind} GPU{'s' * (number != 1)}"


def _size(amount: int) -> str:
    return format_memory(-(-amount // MEGABYTE) * MEGABYTE)
