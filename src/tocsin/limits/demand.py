"""What each job needs from nodes: tasks and their size, whether they may spread, and what every node must have."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from tocsin.core.errors import InputError
from tocsin.core.nodelist import count_nodes, expand_nodes
from tocsin.limits.breach import MEGABYTE
from tocsin.limits.capacity import gpu_types, gpus_by_type, other_gres
from tocsin.limits.constraints import constraint
from tocsin.limits.node_cpus import Reserved, node_cpus
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.slurm_values import gpu_count, gres_gpus, megabytes
from tocsin.scripts.submission import Submission

__all__ = ["Demand", "Request", "demands", "end_of_range", "requests"]

Request = Mapping[str, Any]
"""The fields of a job that the rules read, by name."""
Demand = dict[str, Any]
"""A request for one of its partitions, with `row` (the job's number) and its needs as numbers. Rules are evaluated job by
job: for one script, building a frame would take longer than checking all rules."""

_NO_VALUE = 65_534
_ONE_THREAD = ("nomultithread", "compute_bound", "memory_bound")
_CHECKS_MINCPUS = (24, 11)
"""A release that gives a job no more CPUs on a node than the tasks there may use."""
_COUNTS_TASKS = (26, 5)
_TAKES_SOME_LISTED = (22, 6)
"""A release that gives a job any of the listed nodes if it needs fewer; 22.05 refuses that or takes the first ones."""
_TASK_COUNTS = ("--ntasks", "--extra-node-info", "--spread-job", "--overcommit")
_TYPED_GPUS = ("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")

_FIELDS = (
    *("job_id", "submit", "account", "qos", "group", "user", "partition", "array", "licenses", "reservation"),
    *("constraints", "req_node_list", "exclude_nodes", "time_limit", "time_min", "work_dir"),
    *("req_nodes", "req_cpus", "req_tasks", "cpus_per_task", "tasks_per_node", "req_memory", "req_gpus"),
    *("req_gres", "script", "submit_line"),
)


class _EachNode(NamedTuple):
    """What every node of the job must have; these are not fields of a job record."""

    each_cpus: int = 0
    min_cpus: int = 0
    gpu_cpus: int = 0
    each_gpus: int = 0
    tmp: int = 0
    sockets: int = 0
    cores: int = 0
    threads: int = 0
    socket_tasks: int = 0
    core_tasks: int = 0
    shared: bool = False
    """With -O: all tasks of a node share its CPUs, so any number of them fits."""
    cpu_memory: int = 0
    """For each CPU; of whole nodes, Slurm counts all CPUs, used or not."""
    one_thread: bool = False
    """Of each core, one thread counts as a CPU."""
    node_gpus: int = 0
    """Of a job that requests GPUs per job, too: as many as each node gives it."""
    gpu_tasks: int = 0
    """The most tasks on a node with this many GPUs for the job; 0 if unlimited."""
    all_memory: bool = False
    """With --mem=0: the memory of the node, whatever the partition allows."""


def requests(jobs: pl.DataFrame) -> list[Request]:
    """One for each job."""
    if jobs.height == 1:  # a query would take longer than everything that it reads
        row = jobs.row(0, named=True)
        return [{name: row[name] for name in _FIELDS}]
    return [*jobs.select(_FIELDS).rows(named=True)]


def demands(
    asked: Sequence[Request],
    submissions: Sequence[Submission | None],
    default: str | None,
    release: tuple[int, int] | None = None,
) -> Iterator[Demand]:
    """One for each job and each of its partitions; without any, and without a default, the partition is None.

    Slurm puts `-n 64` on as many nodes as needed, but its records name one node and all the memory on it. Therefore a
    job without a fixed number of nodes is compared with the best way to spread it, never with that one node.
    """
    for row, (request, submission) in enumerate(zip(asked, submissions, strict=True)):
        needed = {**request, "row": row, **_needed(request, submission, release)}
        given = default if request["partition"] is None else request["partition"]
        for partition in [None] if given is None else [*filter(None, given.split(","))] or [default]:
            yield {**needed, "partition": partition}


def _needed(request: Request, submission: Submission | None, release: tuple[int, int] | None) -> Demand:
    """The request in numbers, with defaults filled in."""
    each = _each_node(submission)
    fixed = None if submission is None else submission.fixed
    whole = submission is not None and submission.script.request.get("exclusive") is True
    per_node = submission is not None and submission.memory_per == "node"
    least_nodes = max(request["req_nodes"] or 1, 1)
    node_list = _node_list(request, submission, release)
    nodes = float(max(least_nodes, _listed(node_list, submission, release)))
    if submission and submission.last("--ntasks"):
        nodes = min(nodes, max(request["req_tasks"] or 1, 1))  # sbatch takes no more nodes than tasks
    cpus = _cpus(request)
    block = request["tasks_per_node"] if (request["tasks_per_node"] or 0) > 0 else None
    if each.gpu_tasks and not (submission and submission.last("--ntasks")):
        block = block or each.gpu_tasks
    if each.shared:
        tasks, block = nodes, None
    else:
        tasks = _tasks(request, cpus, nodes)
    asked_memory = request["req_memory"] or 0
    memory = float(asked_memory) if asked_memory > 0 and (not each.shared or per_node) else None
    gpus = _gpus(request, submission, int(nodes), tasks)
    newest = release is not None and release >= _COUNTS_TASKS
    if newest and submission and (of_gpus := _tasks_of_gpus(submission, gpus)):
        tasks = min(tasks, of_gpus)
    wanted = constraint((request["constraints"] or "").replace(",", "&"))
    spread = bool(gpus or wanted.counts or each.shared)
    reserved = Reserved(each.min_cpus, each.gpu_cpus if gpus else 0, each.shared)
    one_node = newest and fixed is True and least_nodes == 1
    return {
        **each._asdict(),
        "fixed": fixed,
        "req_node_list": node_list,
        "asked_nodes": nodes,
        "cpus": cpus,
        "tasks": tasks,
        "block": block,
        "node_cpus": node_cpus(request, submission, reserved, cpus, release),
        "open_tasks": submission is not None and not any(map(submission.last, _TASK_COUNTS)),
        "checks_mincpus": release is not None and release >= _CHECKS_MINCPUS,
        "end_of_range": _end_of_range(request, submission, has_gpus=bool(gpus or each.each_gpus)),
        "whole": whole,
        "core_memory": 0 if whole or each.shared else _core_memory(submission),
        "socket_cpus": release is None or release < _COUNTS_TASKS,
        "nodes_of_tasks": _nodes_of_tasks(submission, tasks, block, release),
        "highest_nodes": _highest_nodes(
            submission, nodes, tasks, block, named=bool(node_list), spread=spread
        ),
        "nodes": max(min(nodes, tasks), math.ceil(tasks / block) if block and not one_node else 0),
        "one_node": one_node,
        # one task cannot span two nodes, and a number of tasks per node sets the number of nodes
        "exact": per_node or bool(fixed) or tasks <= nodes * (block or 1),
        "memory": memory,
        "task_memory": None if memory is None else memory * least_nodes / tasks,
        "gpus": gpus,
        "gpu_types": _gpu_types(request["req_gres"], submission),
        "each_typed": _each_typed(submission),
        "each_gres": other_gres(submission.value("--gres")) if submission else {},
        "constraint": wanted,
        "preferred": submission.value("--prefer").replace(",", "&") if submission else "",
        "given_time": _given_time(request, submission),
        "time": request["time_limit"] if request["time_min"] is None else request["time_min"],
    }


def _end_of_range(request: Request, submission: Submission | None, *, has_gpus: bool) -> int:
    """sbatch lowers it to the number of tasks; the number of GPUs may lower it, too."""
    if submission is None or has_gpus:
        return 0
    most = end_of_range(submission)
    return min(most, max(request["req_tasks"] or 1, 1)) if submission.last("--ntasks") else most


def end_of_range(submission: Submission) -> int:
    """The 4 of `--nodes=2-4`; 0 if the number of nodes is no range."""
    found = re.fullmatch(r"\s*\+?\d+\s*-\s*\+?(\d{1,9})\s*", submission.value("--nodes"), re.ASCII)
    return int(found[1]) if found else 0


def _core_memory(submission: Submission | None) -> int:
    """The memory for each CPU, where Slurm counts every thread of a task's cores as a CPU."""
    if submission is None or submission.memory_per != "cpu":
        return 0
    if any(map(submission.last, ("--threads-per-core", "--hint", "--ntasks-per-core", "--extra-node-info"))):
        return 0
    try:
        return megabytes(submission.value("--mem-per-cpu") or "0")
    except InputError:
        return 0  # reported as a refused option


def _highest_nodes(
    submission: Submission | None, nodes: float, tasks: float, block: int | None, *, named: bool, spread: bool
) -> float:
    """The most nodes that the job may get, if that is certain: as many as it gives, or one for each task."""
    if submission is None:
        return math.inf
    if submission.fixed:
        return math.inf if named else nodes
    if spread or submission.last("--nodes"):
        return math.inf
    return max(nodes, tasks if submission.last("--ntasks") or not block else math.ceil(tasks / block))


def _nodes_of_tasks(
    submission: Submission | None, tasks: float, block: int | None, release: tuple[int, int] | None
) -> float:
    """The most nodes that features with a number (`a*2`) may ask of a job; up to 22.05 they add nodes to it."""
    if submission is None or release is None or release < _COUNTS_TASKS:
        return math.inf
    counted = submission.last("--ntasks") or (block and not submission.last("--nodes"))
    return math.ceil(tasks / (block or 1)) if counted else math.inf


def _given_time(request: Request, submission: Submission | None) -> int | None:
    """The time limit that the user set; before submission, `request` also has a default."""
    given = request if request["job_id"] or submission is None else submission.script.request
    time = given.get("time_limit")
    return time if isinstance(time, int) else None


def _cpus(request: Request) -> int:
    """CPUs of one task."""
    each, cpus, tasks = request["cpus_per_task"], request["req_cpus"], request["req_tasks"] or 0
    if each is None and cpus is not None and tasks > 0:
        each = cpus // max(tasks, request["tasks_per_node"] or 0)
    return max(each or 1, 1)


def _tasks(request: Request, cpus: int, nodes: float) -> float:
    fitting = None if request["req_cpus"] is None else request["req_cpus"] // cpus
    if request["req_tasks"] is not None:
        # fewer than tasks if they share CPUs (-O)
        return float(max(min(request["req_tasks"], request["req_tasks"] if fitting is None else fitting), 1))
    return max(1.0 if fitting is None else float(fitting), nodes)


def _each_node(submission: Submission | None) -> _EachNode:
    if submission is None or submission.script.scheduler is not Scheduler.SLURM:
        return _EachNode()

    def number(option: str) -> int:
        return _whole(submission.value(option))

    shape = [_whole(part) for part in submission.value("--extra-node-info").split(":")]
    sockets, cores, threads = (
        max(number(option), given)
        for option, given in zip(
            ("--sockets-per-node", "--cores-per-socket", "--threads-per-core"),
            [*shape, 0, 0, 0],
            strict=False,
        )
    )
    shared = submission.last("--overcommit") is not None
    least = _least_cpus(submission.value("--mincpus"))
    per_gpu = _count(submission.value("--cpus-per-gpu")) % 2**16
    # Slurm wants CPUs for all of a node's tasks, even if they may share them.
    together = number("--ntasks-per-node") * max(number("--cpus-per-task"), 1)
    cpus = max(least, per_gpu, together if shared else 0)
    core_tasks = 0 if shared else _limited(number("--ntasks-per-core"))
    socket_tasks = _limited(number("--ntasks-per-socket"))
    found = _EachNode(cpus, least, per_gpu, 0, 0, sockets, cores, threads, socket_tasks, core_tasks, shared)
    one_thread = threads == 1 or (not threads and submission.value("--hint").lower() in _ONE_THREAD)
    none = submission.memory_per == "node" and submission.script.request.get("req_memory") == 0
    found = found._replace(one_thread=one_thread, all_memory=none)
    try:
        if submission.memory_per == "cpu":
            found = found._replace(cpu_memory=megabytes(submission.value("--mem-per-cpu")))
        on_node = max(gres_gpus(submission.value("--gres")), gpu_count(submission.value("--gpus-per-node")))
        if submission.last("--gpus"):
            found = found._replace(node_gpus=on_node)
        found = found._replace(gpu_tasks=on_node * number("--ntasks-per-gpu"))
        gpus = [
            reader(given) * factor
            for option, reader, factor in (
                ("--gres", gres_gpus, 1),
                ("--gpus-per-node", gpu_count, 1),
                ("--gpus-per-task", gpu_count, int(not _types_alone(submission))),
                ("--gpus-per-socket", gpu_count, max(sockets, 1)),
            )
            if (given := submission.value(option))
        ] + [min(number("--cpus-per-gpu"), 1)]  # a node without GPUs does not do, even if none is requested
        tmp = _in_32_bits(megabytes(submission.value("--tmp") or "0"))
        return found._replace(each_gpus=max(gpus, default=0), tmp=tmp)
    except InputError:
        return found  # reported as a refused option


def _types_alone(submission: Submission | None) -> bool:
    """Whether GPUs are only requested by --gpus-per-task with a type but no number: newer releases ignore that."""
    others = ("--gpus", "--gpus-per-node", "--gres", "--tres-per-task")
    given = submission.value("--gpus-per-task") if submission else ""
    return bool(
        given
        and submission
        and not re.search(r"(?:^|[:,])\s*\+?\d", given)
        and not any(map(submission.last, others))
    )


def _gpus(request: Request, submission: Submission | None, nodes: int, tasks: float) -> int:
    """All GPUs of the job, as far as it requests a number of them."""
    if _types_alone(submission):
        return 0
    return _gpus_of_nodes(request, submission, nodes) or _gpus_of_tasks(submission, tasks)


def _gpus_of_nodes(request: Request, submission: Submission | None, nodes: int) -> int:
    """GPUs per node count on the nodes that are left: sbatch takes no more nodes than tasks."""
    gpus, asked = max(request["req_gpus"] or 0, 0), max(request["req_nodes"] or 1, 1)
    if submission is None or request["job_id"] or nodes >= asked:
        return gpus
    of_job = any(map(submission.last, ("--gpus", "--gpus-per-task", "--ntasks-per-gpu", "--tres-per-task")))
    return gpus if of_job else gpus // asked * nodes


def _gpus_of_tasks(submission: Submission | None, tasks: float) -> int:
    """With --ntasks-per-gpu and no number of GPUs, Slurm gives as many as the tasks need."""
    per_gpu = _whole(submission.value("--ntasks-per-gpu")) if submission else 0
    return math.ceil(tasks / per_gpu) if per_gpu else 0


def _tasks_of_gpus(submission: Submission, gpus: int) -> float:
    """26.05 starts the tasks of the GPUs instead of those of --ntasks if the number of nodes is 0 (tried there)."""
    nodes = submission.value("--nodes").strip().lstrip("+")
    none = nodes and not nodes.strip("0")
    return float(gpus * _whole(submission.value("--ntasks-per-gpu"))) if none else 0.0


def _in_32_bits(size: int) -> int:
    """Slurm keeps megabytes in 32 bits; one value means none."""
    number = size // MEGABYTE % 2**32
    return 0 if number == 2**32 - 2 else number * MEGABYTE


def _least_cpus(text: str) -> int:
    """Slurm takes a number from 2**31 on for a negative one, which is none."""
    return 0 if _count(text) % 2**32 >= 2**31 else _whole(text)


def _limited(number: int) -> int:
    """The largest number means any number of tasks."""
    return 0 if number == _NO_VALUE + 1 else number


def _whole(text: str) -> int:
    """A number as Slurm keeps it, in 16 bits; one value means none."""
    number = _count(text) % 2**16
    return 0 if number == _NO_VALUE else number


def _count(text: str) -> int:
    found = re.fullmatch(r"\s*\+?(\d{1,18})", text, re.ASCII)
    return int(found[1]) if found else 0


def _node_list(
    request: Request, submission: Submission | None, release: tuple[int, int] | None
) -> str | None:
    """The nodes that a job names; sbatch 22.05 leaves out the last ones if there are fewer tasks."""
    names: str | None = request["req_node_list"]
    if not names or submission is None or not submission.last("--ntasks"):
        return names
    if release is None or release >= _TAKES_SOME_LISTED:
        return names
    try:
        listed = sorted(set(expand_nodes(names)), key=_by_number)
    except InputError:
        return names  # reported as a refused option
    tasks = request["req_tasks"] or 1
    return names if tasks >= len(listed) else ",".join(listed[:tasks])


def _by_number(name: str) -> tuple[str, list[int]]:
    return re.sub(r"\d", "", name), [int(number) for number in re.findall(r"\d{1,18}", name)]


def _listed(names: str | None, submission: Submission | None, release: tuple[int, int] | None) -> int:
    """How many nodes a job must have because it names them; known only before submission."""
    if not names or submission is None or submission.fixed:
        return 0
    if submission.last("--nodes") and (release is None or release >= _TAKES_SOME_LISTED):
        return 0
    try:
        return count_nodes(names)
    except InputError:
        return 0  # reported as a refused option


def _each_typed(submission: Submission | None) -> dict[str, int]:
    """The GPUs of each type that every node of the job, or a node for one of its tasks, must have."""
    found: dict[str, int] = {}
    for option in ("--gres", "--gpus-per-node", "--gpus-per-task") if submission else ():
        given = submission.value(option) if submission else ""
        items = given if option == "--gres" else re.sub(r"(^|,)\s*(?=[A-Za-z])", r"\1gpu:", given)
        for kind, number in gpus_by_type(items).items():
            found[kind] = max(found.get(kind, 0), number)
    return found


def _gpu_types(gres: str | None, submission: Submission | None) -> tuple[str, ...]:
    """The types of GPUs that a job names, in any of its options."""
    types = set(gpu_types(gres)) if gres else set()
    for option in _TYPED_GPUS if submission else ():
        for item in submission.value(option).lower().split(",") if submission else ():
            kind, colon, number = item.lstrip(" \t+").partition(":")
            # Newer releases ignore a type without a number here.
            alone = not kind[:1].isdigit() and option != "--gpus-per-task"
            if kind and (number.strip("0") if colon else alone):
                types.add(kind)
    return tuple(sorted(types))
