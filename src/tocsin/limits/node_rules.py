"""Rules about nodes: whether any placement of the tasks on a partition's nodes exists, and if not, why."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import expand_nodes
from tocsin.core.verdict import Level
from tocsin.limits.breach import MEGABYTE, Breach, Change, plural, size
from tocsin.limits.capacity import NO_LIMIT, Capacity, NodeType, count_types, type_frame
from tocsin.limits.name_rules import list_problem
from tocsin.limits.partition_rules import other_partitions

__all__ = ["node_breaches"]

Row = Mapping[str, Any]
_FEW = 8
_LISTS = ("req_node_list", "exclude_nodes", "reservation")
_POSSIBLE = (pl.col("asked_nodes") <= pl.col("most_nodes")) & (
    (pl.col("tasks") * pl.col("cpus") <= pl.col("most_cpus"))
    | (pl.col("cpus") * pl.col("block").fill_null(1) > pl.col("largest_cpus"))
)
_AT_LEAST = pl.max_horizontal("nodes", pl.col("min_nodes").cast(pl.Float64)).alias("nodes")
"""Slurm gives a job at least as many nodes as its partition requires."""


def node_breaches(demand: pl.DataFrame, capacity: Capacity) -> Iterator[Breach]:
    """`demand` is joined with the limits of its partitions; too many nodes or CPUs are reported there."""
    possible = demand.filter(_POSSIBLE)
    if capacity.features:
        known = pl.lit(sorted(capacity.features), pl.List(pl.String))
        possible = possible.filter(pl.col("needs").list.set_difference(known).list.len() == 0)
    possible = possible.with_columns(_AT_LEAST)
    if possible.height <= _FEW:  # a frame costs more than a look at each of a few jobs
        unsure = [not _fits_one_node(row, capacity) for row in possible.iter_rows(named=True)]
        possible = possible.filter(pl.Series(unsure, dtype=pl.Boolean)) if any(unsure) else possible.clear()
    if not possible.height:
        return
    listed = pl.any_horizontal(pl.col(name).is_not_null() for name in _LISTS)
    anywhere, chosen = possible.filter(~listed), possible.filter(listed)
    placed = [_placed(anywhere, capacity.types)] if anywhere.height else []
    placed += [_placed_on_some(row, chosen, capacity) for row in chosen.iter_rows(named=True)]
    for row in pl.concat(placed).filter(~pl.col("fits") | ~pl.col("fits_now")).iter_rows(named=True):
        if row["fits"]:
            such = f"too few such nodes of partition {row['partition']} are available now"
            yield Breach.here(
                row,
                "nodes_out_of_service",
                f"requests {_request_text(row)}, but {such}",
                "use another partition, or wait until they are back",
                level=Level.WARNING,
                evidence=tuple(capacity.unavailable(row["partition"])),
            )
        else:
            yield _reason(row, capacity)


def _fits_one_node(row: Row, capacity: Capacity) -> bool:
    """Whether one available node clearly takes the whole job."""
    if row["asked_nodes"] != 1 or row["nodes"] != 1 or any(row[name] for name in _LISTS):
        return False
    return any(
        _room(row, node) >= row["tasks"] and row["gpus"] <= node.gpus
        for node in capacity.serving[row["partition"]]
    )


def _room(row: Row, node: NodeType) -> float:
    """How many tasks of the job a node of this type holds; `_placed` computes the same for frames."""
    cpus = min(node.cpus, row["max_cpus_per_node"])
    memory = min(node.memory, row["max_memory_per_node"], row["max_memory_per_cpu"] * cpus)
    suits = (
        (not row["gpus"] or node.gpus > 0)
        and node.gpus >= row["each_gpus"]
        and (not node.gpu_types or set(row["gpu_types"]) <= set(node.gpu_types))
        and (node.features is None or set(row["needs"]) <= set(node.features))
        and cpus >= row["each_cpus"]
        and node.tmp >= row["tmp"]
        and node.sockets >= row["sockets"]
        and node.cores >= row["cores"]
        and node.threads >= row["threads"]
        and node.cores * node.threads >= row["socket_tasks"]
    )
    room = cpus // row["cpus"]
    block = row["block"] or 1  # Slurm wants CPUs for all of them on each node, even if there are fewer tasks
    suits = suits and room >= block
    if row["memory"] is not None:
        each = row["memory"] if row["exact"] else row["task_memory"]
        room = min(room, memory // each if not row["exact"] else (room if each <= memory else 0))
    return room if suits and room >= min(block, row["tasks"]) else 0


def _placed_on_some(row: Row, demand: pl.DataFrame, capacity: Capacity) -> pl.DataFrame:
    """The job with whether it fits on the nodes that its lists and its reservation leave."""
    only = demand.filter((pl.col("row") == row["row"]) & (pl.col("partition") == row["partition"]))
    booked = next((r for r in capacity.machine.reservations or () if r.name == row["reservation"]), None)
    try:
        wanted = set(expand_nodes(row["req_node_list"] or ""))
        excluded = set(expand_nodes(row["exclude_nodes"] or ""))
        within = set(expand_nodes(booked.node_list)) if booked and booked.node_list else None
    except NodeListError:
        return _placed(only, capacity.types)  # sbatch reports a bad list itself
    if list_problem(row, wanted, excluded, capacity):
        return only.with_columns(fits=True, fits_now=True)  # reported with its list
    nodes = [
        node
        for node in capacity.nodes[row["partition"]]
        if node.name not in excluded and (within is None or node.name in within)
    ]
    if not capacity.nodes[row["partition"]]:
        return _placed(only, capacity.types)
    on_each = all(_room(row, kind) for kind, *_ in count_types(node for node in nodes if node.name in wanted))
    if not nodes or not on_each:
        return only.with_columns(fits=False, fits_now=False)
    return _placed(only, type_frame([(row["partition"], count_types(nodes))]))


def _placed(demand: pl.DataFrame, types: pl.DataFrame) -> pl.DataFrame:
    """Whether the tasks fit on the nodes there are, and on those available now.

    Each node type holds a number of tasks by its CPUs, memory, GPUs and features; the best nodes are taken first, as
    many as the job may have. Each node is assumed to be empty: no smaller request could fail.
    """
    both = demand.join(types, on="partition", how="left")
    cpus = pl.min_horizontal("node_cpus", pl.col("max_cpus_per_node").cast(pl.Float64))
    memory = pl.min_horizontal(
        "node_memory",
        pl.col("max_memory_per_node").cast(pl.Float64),
        pl.col("max_memory_per_cpu").cast(pl.Float64) * cpus,
    )
    by_memory = (
        pl.when(pl.col("memory").is_null() | (pl.col("exact") & (pl.col("memory") <= memory)))
        .then(pl.lit(float(NO_LIMIT)))
        .when(pl.col("exact"))
        .then(0.0)
        .otherwise(memory // pl.col("task_memory"))
    )
    suits = (
        ((pl.col("gpus") == 0) | (pl.col("node_gpus") > 0))
        & (pl.col("node_gpus") >= pl.col("each_gpus"))
        & (cpus >= pl.col("each_cpus"))
        & (cpus // pl.col("cpus") >= pl.col("block").fill_null(1))
        & pl.all_horizontal(
            pl.col(f"node_{name}") >= pl.col(name) for name in ("tmp", "sockets", "cores", "threads")
        )
        & (pl.col("node_cores") * pl.col("node_threads") >= pl.col("socket_tasks"))
        & (
            pl.col("node_gpu_types").is_null()
            | (pl.col("node_gpu_types").list.len() == 0)
            | (pl.col("gpu_types").list.set_difference("node_gpu_types").list.len() == 0)
        )
        & (
            pl.col("node_features").is_null()
            | (pl.col("needs").list.set_difference("node_features").list.len() == 0)
        )
    )
    holds = pl.min_horizontal(cpus // pl.col("cpus"), by_memory, "tasks")
    places = (
        pl.when(~suits | (holds < pl.min_horizontal(pl.col("block").fill_null(1), "tasks")))
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
    return demand.join(found, on=("row", "partition"), how="left", maintain_order="left")


def _enough(count: str, name: str) -> pl.Expr:
    """Over the types of one job and partition, best first: room for all tasks and GPUs on enough nodes."""
    number, most = pl.col(count), pl.col("most").first()
    taken = (most - (number.cum_sum() - number)).clip(0, number)
    room = (taken * pl.col("places")).sum() >= pl.col("tasks").first()
    hosts = pl.when(pl.col("places") > 0).then(number).otherwise(0.0).sum() >= pl.col("nodes").first()
    # GPUs on the nodes with most of them, which need not be those with most room: an upper bound
    useful = pl.when(pl.col("places") > 0).then(number).otherwise(0.0)
    order = pl.col("node_gpus").arg_sort(descending=True)
    sorted_, gpus = useful.gather(order), pl.col("node_gpus").gather(order)
    held = ((most - (sorted_.cum_sum() - sorted_)).clip(0, sorted_) * gpus).sum()
    return (room & hosts & (held >= pl.col("gpus").first())).fill_null(True).alias(name)


def _reason(row: Row, capacity: Capacity) -> Breach:
    """The simplest reason that is enough by itself, else that no node has everything at once."""
    reason = (
        _too_wide(row, capacity)
        or _too_much_memory(row, capacity)
        or _too_many_gpus(row, capacity)
        or (
            "too_few_such_nodes",
            f"requests {_request_text(row)}, but partition {row['partition']} has too few nodes with all of it",
            "request less, or use another partition",
            None,
        )
    )
    return Breach.here(row, *reason, evidence=capacity.described[row["partition"]])


Reason = tuple[str, str, str, Change | None]


def _too_wide(row: Row, capacity: Capacity) -> Reason | None:
    largest = capacity.largest[row["partition"]].cpus
    cpus = int(max(row["cpus"] * (row["block"] or 1), row["each_cpus"]))
    if cpus <= largest:
        return None
    one_task = cpus == row["cpus"]
    more = other_partitions(capacity, row, lambda p: capacity.largest[p.name].cpus >= cpus)
    return (
        "cpus_above_any_node",
        f"requests {cpus} CPUs {'per task' if one_task else 'on each node'}, but partition {row['partition']} has at "
        f"most {largest} on one node",
        f"request at most {largest}{more}",
        ("cpus_per_task", largest) if one_task else None,
    )


def _too_much_memory(row: Row, capacity: Capacity) -> Reason | None:
    largest = capacity.largest[row["partition"]].memory
    memory = int(row["memory"] if row["exact"] else row["task_memory"]) if row["memory"] is not None else 0
    if memory <= largest:
        return None
    most = largest // MEGABYTE * MEGABYTE
    more = other_partitions(capacity, row, lambda p: capacity.largest[p.name].memory >= memory)
    return (
        "memory_above_any_node",
        f"requests {size(memory)} {'on each node' if row['exact'] else 'per task'}, but partition {row['partition']} "
        f"gives a job at most {size(most)} on one node",
        f"request at most {size(most)}{more}",
        ("req_memory", most) if row["exact"] else None,
    )


def _too_many_gpus(row: Row, capacity: Capacity) -> Reason | None:
    partition, wanted = row["partition"], int(row["gpus"])
    at_most = int(min(row["nodes"] if row["exact"] else row["most_nodes"], NO_LIMIT))
    there = sum(sorted((node.gpus for node in capacity.nodes[partition]), reverse=True)[:at_most])
    if wanted and not there:
        more = other_partitions(capacity, row, lambda p: 0 < capacity.largest[p.name].gpus < NO_LIMIT)
        return (
            "no_gpus",
            f"requests {_gpus(row)}, but no node of partition {partition} has a GPU",
            more.removeprefix(" or ") or "use a partition with GPUs",
            None,
        )
    if wanted <= there:
        return None
    place = "one node" if at_most == 1 else f"{at_most} nodes"
    more = other_partitions(capacity, row, lambda p: wanted <= capacity.largest[p.name].gpus < NO_LIMIT)
    return (
        "gpus_above_partition",
        f"requests {_gpus(row)}, but partition {partition} has at most {there} on {place}",
        f"request at most {there}{more}",
        ("req_gpus", there),
    )


def _request_text(row: Row) -> str:
    """The request in words, without what is not requested."""
    tasks, nodes = int(row["tasks"]), int(row["nodes"])
    words = [f"{plural(tasks, 'task')} with {plural(row['cpus'], 'CPU')}{' each' * (tasks > 1)}"]
    if row["fixed"] or nodes > 1:
        words.append(f"on {plural(nodes, 'node')}")
    if row["block"] is not None:
        words.append(f"with {plural(row['block'], 'task')} per node")
    if row["socket_tasks"]:
        words.append(f"with {plural(row['socket_tasks'], 'task')} per socket")
    if row["memory"] is not None:
        amount, per = (row["memory"], "node") if row["exact"] else (row["task_memory"], "task")
        words.append(f"with {size(amount)} per {per}")
    if row["gpus"]:
        words.append(f"and {_gpus(row)}")
    if row["tmp"]:
        words.append(f"with {size(row['tmp'])} of temporary disk")
    shape = [
        plural(row[name], f"{name[:-1]}{per}")
        for name, per in (("sockets", ""), ("cores", " per socket"), ("threads", " per core"))
        if row[name]
    ]
    if shape:
        words.append(f"on nodes with {' and '.join(shape)}")
    if row["needs"]:
        words.append(f"with the features {' and '.join(row['needs'])}")
    if row["req_node_list"]:
        words.append(f"on {row['req_node_list'][:100]}")
    if row["exclude_nodes"]:
        words.append(f"without {row['exclude_nodes'][:100]}")
    if row["reservation"]:
        words.append(f"in reservation {row['reservation'][:100]}")
    return " ".join(words)


def _gpus(row: Row) -> str:
    types = f"{'/'.join(row['gpu_types'])} " if row["gpu_types"] else ""
    return plural(row["gpus"], f"{types}GPU")
