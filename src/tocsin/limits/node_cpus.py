"""CPUs of a job on each node: Slurm may count more than those of the tasks there.

Compared with Slurm 22.05, 24.11 and 26.05. Of other releases, what is certain on all three is assumed.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tocsin.scripts.submission import Submission

__all__ = ["NodeCpus", "Reserved", "node_cpus"]

_AFTER_OLDEST = (22, 6)
_COMPARED = (24, 11)
_NEWEST = (26, 5)
_MORE_NODES = ("--nodes", "--nodelist", "--nodefile", "--constraint", "--gpus", "--gres", "--gpus-per-node")
"""Options that may put the tasks on more nodes than one."""
_MORE_CPUS = ("--spread-job", "--extra-node-info", "--sockets-per-node", "--cores-per-socket")


class Reserved(NamedTuple):
    """CPUs on each node that do not depend on tasks, and whether tasks share CPUs (-O)."""

    least: int
    """Of --mincpus."""
    per_gpu: int
    """Of --cpus-per-gpu, if the job has GPUs."""
    shared: bool


class NodeCpus(NamedTuple):
    given: int
    """What the job gets at least, which limits of accounts and QOS count."""
    most: int
    """The same, where releases that were not compared may count more."""
    with_memory: int
    """For how many of those these limits count an amount of memory per CPU."""
    counted: int
    """What an amount of memory per CPU is multiplied by."""
    starved: bool
    """It waits for ever, because it gets fewer CPUs than its tasks there need, unless the whole node is its own."""


def node_cpus(
    request: Mapping[str, Any],
    submission: Submission | None,
    reserved: Reserved,
    cpus: int,
    release: tuple[int, int] | None,
) -> NodeCpus:
    """`cpus` are those of one task. Without a script, it is unknown whether the tasks share CPUs."""
    if submission is None:
        return NodeCpus(0, 0, 0, 0, False)
    counted = submission.last("--ntasks") is not None
    together = max(request["tasks_per_node"] or 0, 0)
    # A node gives CPUs for all the tasks that it may have, except to a job of one task.
    of_tasks = together * cpus if (request["req_tasks"] or 0) > 1 else 0
    oldest = max(reserved.least, reserved.per_gpu, of_tasks)
    # With --ntasks, --mincpus only chooses nodes from 24.11 on, and on 24.11 so does --ntasks-per-node.
    newest = max(reserved.per_gpu, of_tasks, 0 if counted else reserved.least)
    between = reserved.per_gpu if counted else oldest
    least, most, with_memory = between, oldest, 0
    if release is not None and (release < _AFTER_OLDEST or release >= _NEWEST):
        least = most = with_memory = newest if release >= _NEWEST else oldest
    elif release is not None and release >= _COMPARED:
        most = between
    return NodeCpus(
        given=0 if reserved.shared else least,
        most=0 if reserved.shared else most,
        with_memory=0 if reserved.shared else with_memory,
        counted=max(reserved.least, reserved.per_gpu, together * cpus),
        starved=not request["job_id"] and _starved(request, submission, reserved, cpus, release),
    )


def _starved(
    request: Mapping[str, Any],
    submission: Submission,
    reserved: Reserved,
    cpus: int,
    release: tuple[int, int] | None,
) -> bool:
    """24.11 gives CPUs for one task per node to tasks that share them, and 26.05 to a job of one task (`-n 1`), too."""
    if release is None or release < _COMPARED:
        return False
    counted, tasks = submission.last("--ntasks"), request["req_tasks"] or 1
    together = max(request["tasks_per_node"] or 0, 0)
    if reserved.shared:
        spread = not submission.fixed and any(map(submission.last, _MORE_NODES))
        if cpus == 1 or spread or any(map(submission.last, _MORE_CPUS)):
            return False
        if counted:
            if tasks > 1 and not submission.fixed and submission.last("--ntasks-per-node"):
                return False
            nodes = max(request["req_nodes"] or 1, 1) if submission.fixed else 1
            together = max(together if release >= _NEWEST else 0, math.ceil(tasks / nodes))
    elif release < _NEWEST or not counted or tasks > 1:
        return False
    return together > 1 and together * cpus > max(cpus, reserved.least)
