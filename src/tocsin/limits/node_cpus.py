"""CPUs of a job on each node: Slurm may count more than those of the tasks there.

Compared with Slurm 22.05 and 26.05; releases between them are taken for 22.05.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tocsin.scripts.submission import Submission

__all__ = ["NodeCpus", "Reserved", "node_cpus"]

_NEWEST = (26, 5)


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
        return NodeCpus(0, 0, False)
    newest = release is not None and release >= _NEWEST
    counted = submission.last("--ntasks") is not None
    together = max(request["tasks_per_node"] or 0, 0)
    # Up to 22.05 and without --ntasks, --mincpus does not only choose nodes.
    least = 0 if newest and counted else reserved.least
    # A node gives CPUs for all the tasks that it may have, except to a job of one task.
    of_tasks = together * cpus if (request["req_tasks"] or 0) > 1 else 0
    return NodeCpus(
        given=0 if reserved.shared else max(least, reserved.per_gpu, of_tasks),
        counted=max(reserved.least, reserved.per_gpu, together * cpus),
        starved=newest and not request["job_id"] and _starved(request, submission, reserved, cpus, together),
    )


def _starved(
    request: Mapping[str, Any], submission: Submission, reserved: Reserved, cpus: int, together: int
) -> bool:
    """26.05 gives CPUs for one task to a job of one task (`-n 1`), and for one per node to tasks that share them."""
    counted, tasks = submission.last("--ntasks"), request["req_tasks"] or 1
    if reserved.shared:
        unclear = submission.last("--nodes") and not submission.fixed
        if cpus == 1 or unclear or submission.last("--spread-job"):
            return False
        if counted:
            nodes = max(request["req_nodes"] or 1, 1) if submission.fixed else 1
            together = max(together, math.ceil(tasks / nodes))
    elif not counted or tasks > 1:
        return False
    return together > 1 and together * cpus > max(cpus, reserved.least)
