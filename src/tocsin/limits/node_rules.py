"""Rules about nodes: whether any placement of the tasks on a partition's nodes exists, and if not, why."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import expand_nodes
from tocsin.core.verdict import Level
from tocsin.limits.breach import Breach
from tocsin.limits.capacity import NO_LIMIT, Capacity, NodeType, TypeCount, count_types
from tocsin.limits.constraints import Constraint, Suits, constraint
from tocsin.limits.demand import Demand
from tocsin.limits.name_rules import list_problem
from tocsin.limits.node_reasons import reason, request_text, starved

__all__ = ["node_breaches"]

_MOST_COUNTS = 6
_LISTS = ("req_node_list", "exclude_nodes", "reservation")


def node_breaches(demand: Sequence[Demand], capacity: Capacity) -> Iterator[Breach]:
    """`demand` has the limits of its partitions; too many nodes or CPUs are reported there."""
    for asked in demand:
        if not _possible(asked) or (
            capacity.features and not capacity.features.issuperset(asked["constraint"].names)
        ):
            continue
        # Slurm gives more CPUs for more memory per CPU, and more nodes where the partition requires them.
        more = asked["cpu_memory"] > asked["max_memory_per_cpu"] or (
            asked["shared"] and asked["min_nodes"] > 1
        )
        if asked["node_cpus"].starved and not (asked["whole"] or asked["whole_nodes"] or more):
            yield starved(asked)
            continue
        # Slurm gives a job at least as many nodes as its partition requires.
        row = {**asked, "nodes": max(asked["nodes"], asked["min_nodes"])}
        row["each_gres"] = {name: n for name, n in asked["each_gres"].items() if name in capacity.gres}
        fits, fits_now = _fits_somewhere(row, capacity)
        if not fits:
            yield reason(row, capacity)
        elif _preferred_in_vain(row, capacity):
            yield Breach.here(
                row,
                "too_few_preferred_nodes",
                f"prefers nodes with {row['preferred'][:100]}, but partition {row['partition']} has too few of them that "
                "can run it, and Slurm refuses such a job",
                "remove --prefer",
            )
        elif not fits_now:
            such = f"too few such nodes of partition {row['partition']} are available now"
            yield Breach.here(
                row,
                "nodes_out_of_service",
                f"requests {request_text(row)}, but {such}",
                "use another partition, or wait until they are back",
                level=Level.WARNING,
                evidence=tuple(capacity.unavailable(row["partition"])),
            )


def _fits_somewhere(row: Demand, capacity: Capacity) -> tuple[bool, bool]:
    if any(row[name] for name in _LISTS):
        return _fits_on_some(row, capacity)
    return _fits(row, capacity.types[row["partition"]])


def _preferred_in_vain(row: Demand, capacity: Capacity) -> bool:
    """Slurm treats a preference as a constraint if there is none (seen on 22.05 and 26.05)."""
    if not row["preferred"] or row["constraints"] or row["job_id"]:
        return False
    preferred = constraint(row["preferred"])
    if capacity.features and not capacity.features.issuperset(preferred.names):
        return False  # reported as unknown
    return not _fits_somewhere({**row, "constraint": preferred}, capacity)[0]


def _possible(row: Demand) -> bool:
    """Whether no limit of the partition on nodes or CPUs is broken."""
    return bool(
        row["asked_nodes"] <= row["most_nodes"]
        and (
            row["tasks"] * row["cpus"] <= row["most_cpus"]
            or row["cpus"] * (row["block"] or 1) > row["largest_cpus"]
        )
    )


def _fits_on_some(row: Demand, capacity: Capacity) -> tuple[bool, bool]:
    """Whether the job fits on the nodes that its lists and its reservation leave, and on those available now."""
    types = capacity.types[row["partition"]]
    booked = next((r for r in capacity.machine.reservations or () if r.name == row["reservation"]), None)
    try:
        wanted = set(expand_nodes(row["req_node_list"] or ""))
        excluded = set(expand_nodes(row["exclude_nodes"] or ""))
        within = set(expand_nodes(booked.node_list)) if booked and booked.node_list else None
    except NodeListError:
        return _fits(row, types)  # sbatch reports a bad list itself
    if list_problem(row, wanted, excluded, capacity):
        return True, True  # reported with its list
    there = capacity.nodes[row["partition"]]
    if not there:
        return _fits(row, types)
    nodes = [node for node in there if node.name not in excluded and (within is None or node.name in within)]
    if row["fixed"] and row["nodes"] <= len(wanted):
        nodes = [node for node in nodes if node.name in wanted]
    listed = [
        any(_places(row, kind, suits) for suits in row["constraint"].alternatives)
        for kind, *_ in count_types(node for node in nodes if node.name in wanted)
    ]
    # Of more nodes than the job needs, it gets some.
    enough = all if len(wanted) <= row["nodes"] else any
    if not nodes or (listed and not enough(listed)):
        return False, False
    return _fits(row, count_types(nodes))


def _fits(row: Demand, types: Sequence[TypeCount]) -> tuple[bool, bool]:
    """Whether the tasks fit on the existing nodes, and on those available now.

    Each node type holds a number of tasks by its CPUs, memory, GPUs and features; the best nodes are used first, as
    many as the job may have. Each node is assumed to be empty: no smaller request could fail.
    """
    wanted: Constraint = row["constraint"]
    for suits, least in wanted.counts:
        if min(row["nodes"] if row["fixed"] else row["most_nodes"], row["nodes_of_tasks"]) < least:
            return False, False
        such = [(number, serving) for kind, number, serving in types if _places(row, kind, suits)]
        if sum(number for number, _ in such) < least:
            return False, False
        if sum(serving for _, serving in such) < least:
            return _fits_all(row, types, wanted.alternatives[0])[0], False
    if wanted.counted_apart and not _enough_apart(row, types, wanted):
        return False, False
    found = [_fits_all(row, types, suits) for suits in wanted.alternatives]
    return any(fits for fits, _ in found), any(now for _, now in found)


def _enough_apart(row: Demand, types: Sequence[TypeCount], wanted: Constraint) -> bool:
    """Whether there are different nodes for each of the numbers, and no more than the job may have."""
    most = row["nodes"] if row["fixed"] else min(row["end_of_range"] or NO_LIMIT, row["most_nodes"])
    if sum(least for _, least in wanted.counts) > most:
        return False
    for length in range(2, min(len(wanted.counts), _MOST_COUNTS) + 1):
        for some in combinations(wanted.counts, length):
            there = sum(n for kind, n, _ in types if any(_places(row, kind, suits) for suits, _ in some))
            if there < sum(least for _, least in some):
                return False
    return True


def _fits_all(row: Demand, types: Sequence[TypeCount], suits: Suits) -> tuple[bool, bool]:
    """The same with nodes that suit."""
    useful = [
        (places, kind.gpus, number, serving)
        for kind, number, serving in types
        if (places := _places(row, kind, suits))
    ]
    most = max(row["nodes"], 0 if row["fixed"] else min(row["tasks"], row["most_nodes"]))
    each_gpus = row["node_gpus"] or NO_LIMIT
    if row["end_of_range"]:
        most = max(min(most, row["end_of_range"]), row["nodes"])
    most_gpu_nodes = max(most, min(math.ceil(row["gpus"] / each_gpus), row["most_nodes"]))

    def enough(counted: Iterable[tuple[float, int, int]]) -> bool:
        counted = list(counted)
        return bool(
            _taken(((places, count) for places, _, count in counted), most) >= row["tasks"]
            and sum(count for *_, count in counted) >= row["nodes"]
            # GPUs on the nodes with most of them, which need not be those with most room: an upper bound
            and _taken(((min(gpus, each_gpus), count) for _, gpus, count in counted), most_gpu_nodes)
            >= row["gpus"]
        )

    return (
        enough((places, gpus, number) for places, gpus, number, _ in useful),
        enough((places, gpus, serving) for places, gpus, _, serving in useful),
    )


def _taken(amounts: Iterable[tuple[float, int]], most: float) -> float:
    """The sum over at most this many nodes, the largest first; `amounts` has the amount and number of nodes."""
    total = 0.0
    for each, count in sorted(amounts, reverse=True):
        total += each * min(count, most)
        most -= min(count, most)
    return total


def _places(row: Demand, node: NodeType, suits: Suits) -> float:
    """How many tasks of the job a node of this type takes."""
    cpus = min(node.cpus, row["max_cpus_per_node"])
    memory = min(node.memory, row["max_memory_per_node"], row["max_memory_per_cpu"] * cpus)
    cpus = min(cpus, _cpus_of_cores(row, node))
    block = row["block"] or 1
    fit = (
        (not row["gpus"] or node.gpus > 0)
        and node.gpus >= row["each_gpus"]
        and _has_gres(row, node)
        and (node.gpu_types is None or set(row["gpu_types"]) <= set(node.gpu_types))
        and suits(node.features)
        and node.cpus >= row["each_cpus"]  # regardless of the partition's limit
        # Slurm wants CPUs for all tasks of a node on each node, even if there are fewer tasks
        and cpus // row["cpus"] >= block
        and cpus >= row["core_tasks"]
        and node.tmp >= row["tmp"]
        and node.sockets >= row["sockets"]
        and node.cores >= row["cores"]
        and node.threads >= row["threads"]
        and node.cores * node.threads >= row["socket_tasks"]
        and not (row["whole"] and node.cpus > row["max_cpus_per_node"])
        and memory >= _memory_of_whole(row, node)
        and memory >= _memory_of_given(row)
        and not (row["checks_mincpus"] and _starves(row, node))
        and memory >= _memory_of_cores(row, node)
        and not (row["all_memory"] and row["max_memory_per_node"] < NO_LIMIT)
    )
    if not fit:
        return 0
    holds = min(cpus // row["cpus"], row["tasks"], _most_tasks(row, node))
    if row["memory"] is not None:
        if not row["exact"]:
            holds = min(holds, math.floor(memory / row["task_memory"]))
        elif row["memory"] > memory:
            return 0
    if holds < min(block, row["tasks"]):
        return 0
    # 26.05 puts all tasks on one node whose CPUs do not depend on them, however many tasks per node were requested.
    alone = row["one_node"] and (row["whole"] or row["whole_nodes"] or row["gpu_cpus"] > 0)
    return float(holds if alone else min(holds, row["block"] or holds))


def _has_gres(row: Demand, node: NodeType) -> bool:
    """Whether it has enough of each generic resource. One with two types of GPUs may have few of each."""
    there = dict(node.typed_gpus)
    if any(number > there.get(kind, NO_LIMIT) for kind, number in row["each_typed"].items()):
        return False
    others = dict(node.gres or ())
    return node.gres is None or all(
        number <= others.get(name, 0) for name, number in row["each_gres"].items()
    )


def _cpus_of_cores(row: Demand, node: NodeType) -> int:
    """The CPUs of a node that tasks may use: of each core all threads, or one."""
    known = max(node.cpus, node.threads) < NO_LIMIT
    return node.cpus // node.threads if row["one_thread"] and known else node.cpus


def _most_tasks(row: Demand, node: NodeType) -> float:
    """What --ntasks-per-core, --ntasks-per-socket and --ntasks-per-gpu allow on a node."""
    most = float(row["gpu_tasks"] or NO_LIMIT)
    if max(node.sockets, node.cores, node.threads) == NO_LIMIT:
        return most
    if row["core_tasks"]:
        most = min(most, node.sockets * node.cores * row["core_tasks"])
    if row["socket_tasks"]:
        exactly = node.sockets * row["socket_tasks"]
        # 22.05 gives the tasks of a socket whole cores, and then counts CPUs.
        cores = math.ceil(row["socket_tasks"] * row["cpus"] / node.threads)
        lenient = row["socket_cpus"] and not row["block"]
        most = min(most, node.sockets * cores * node.threads // row["cpus"] if lenient else exactly)
    return most


def _memory_of_whole(row: Demand, node: NodeType) -> int:
    """Of whole nodes, an amount per CPU counts for all CPUs."""
    if node.cpus == NO_LIMIT or not (row["whole"] or row["whole_nodes"]):
        return 0
    return int(row["cpu_memory"] * _cpus_of_cores(row, node))


def _starves(row: Demand, node: NodeType) -> bool:
    """Whether a newer release never gives the job the CPUs of --mincpus on such a node: more than its tasks there may use."""
    if row["whole"] or row["whole_nodes"] or not row["min_cpus"]:
        return False
    if row["cpu_memory"] > row["max_memory_per_cpu"] or row["sockets"] or row["cores"]:
        return False  # Slurm gives more CPUs
    if row["open_tasks"] and row["min_cpus"] > row["max_cpus_per_node"]:
        return True
    most = row["tasks_per_node"] if (row["tasks_per_node"] or 0) > 0 else NO_LIMIT
    return bool(row["min_cpus"] > min(most, _most_tasks(row, node)) * row["cpus"])


def _memory_of_given(row: Demand) -> int:
    """An amount per CPU counts for all CPUs that the job gets on a node, used or not."""
    if row["max_memory_per_cpu"] < NO_LIMIT:  # of such partitions, Slurm raises the number of CPUs instead
        return 0
    return int(row["cpu_memory"] * row["node_cpus"].counted)


def _memory_of_cores(row: Demand, node: NodeType) -> int:
    """A task takes whole cores, and an amount per CPU counts for all their threads."""
    if not row["core_memory"] or node.threads == NO_LIMIT or row["max_memory_per_cpu"] < NO_LIMIT:
        return 0
    return int(row["core_memory"] * math.ceil(row["cpus"] / node.threads) * node.threads)
