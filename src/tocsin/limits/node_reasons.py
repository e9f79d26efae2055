"""Why no placement of a job on a partition's nodes exists, and what to change."""

from tocsin.limits.breach import MEGABYTE, Breach, Change, plural, size
from tocsin.limits.capacity import NO_LIMIT, Capacity
from tocsin.limits.demand import Demand
from tocsin.limits.partition_rules import other_partitions

__all__ = ["reason", "request_text", "starved"]


def starved(row: Demand) -> Breach:
    if row["shared"]:
        text = f"requests {plural(row['cpus'], 'CPU')} per task for tasks that share CPUs"
        remedy = "remove --overcommit"
    else:
        text = f"requests one task but {row['block']} tasks per node"
        remedy = "remove --ntasks-per-node"
    never = ", which this release of Slurm accepts but never starts"
    return Breach.here(row, "tasks_without_cpus", text + never, remedy)


def reason(row: Demand, capacity: Capacity) -> Breach:
    """The simplest sufficient reason, else that no node has everything at once."""
    why = (
        _too_wide(row, capacity)
        or _too_much_memory(row, capacity)
        or _too_many_gpus(row, capacity)
        or (
            "too_few_such_nodes",
            f"requests {request_text(row)}, but partition {row['partition']} has too few nodes with all of it",
            "request less, or use another partition",
            None,
        )
    )
    return Breach.here(row, *why, evidence=capacity.described[row["partition"]])


Reason = tuple[str, str, str, Change | None]


def _too_wide(row: Demand, capacity: Capacity) -> Reason | None:
    cpus, largest = int(row["cpus"] * (row["block"] or 1)), capacity.largest[row["partition"]].cpus
    if cpus <= largest:
        cpus = row["each_cpus"]
        largest = max((kind.cpus for kind, *_ in capacity.types[row["partition"]]), default=NO_LIMIT)
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


def _too_much_memory(row: Demand, capacity: Capacity) -> Reason | None:
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


def _too_many_gpus(row: Demand, capacity: Capacity) -> Reason | None:
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


def request_text(row: Demand) -> str:
    """The request in words, without what is not requested."""
    tasks, nodes = int(row["tasks"]), int(row["nodes"])
    words = [f"{plural(tasks, 'task')} with {plural(row['cpus'], 'CPU')}{' each' * (tasks > 1)}"]
    if row["fixed"] or nodes > 1:
        words.append(f"on {plural(nodes, 'node')}")
    if row["block"] is not None:
        words.append(f"with {plural(row['block'], 'task')} per node")
    if row["min_cpus"]:
        words.append(f"with at least {plural(row['min_cpus'], 'CPU')} per node")
    if row["whole"]:
        words.append("on whole nodes")
    if row["core_tasks"]:
        words.append(f"with {plural(row['core_tasks'], 'task')} per core")
    if row["socket_tasks"]:
        words.append(f"with {plural(row['socket_tasks'], 'task')} per socket")
    if row["one_thread"]:
        words.append("with one thread per core")
    if row["all_memory"]:
        words.append("with all memory of each node")
    if row["gpu_tasks"]:
        words.append(f"with {plural(row['gpu_tasks'], 'task')} for the GPUs of a node")
    if row["cpu_memory"] and (row["whole"] or row["whole_nodes"]):
        words.append(f"with {size(row['cpu_memory'])} for every CPU of a whole node")
    elif row["memory"] is not None:
        amount, per = (row["memory"], "node") if row["exact"] else (row["task_memory"], "task")
        words.append(f"with {size(amount)} per {per}")
    if row["gpus"]:
        words.append(f"and {_gpus(row)}")
    words += [f"with {name}:{number} on each node" for name, number in row["each_gres"].items()]
    if row["tmp"]:
        words.append(f"with {size(row['tmp'])} of temporary disk")
    shape = [
        plural(row[name], f"{name[:-1]}{per}")
        for name, per in (("sockets", ""), ("cores", " per socket"), ("threads", " per core"))
        if row[name]
    ]
    if shape:
        words.append(f"on nodes with {' and '.join(shape)}")
    if row["constraint"].text:
        words.append(f"with the features {row['constraint'].text.replace('&', ' and ')[:100]}")
    if row["req_node_list"]:
        words.append(f"on {row['req_node_list'][:100]}")
    if row["exclude_nodes"]:
        words.append(f"without {row['exclude_nodes'][:100]}")
    if row["reservation"]:
        words.append(f"in reservation {row['reservation'][:100]}")
    return " ".join(words)


def _gpus(row: Demand) -> str:
    types = f"{'/'.join(row['gpu_types'])} " if row["gpu_types"] else ""
    return plural(row["gpus"], f"{types}GPU")
