"""A record of the simulation as accounting would show it now, without the hidden truth."""

from typing import Any

from tocsin.core.fields import Job
from tocsin.core.nodelist import fold_nodes
from tocsin.core.outcomes import outcome_of
from tocsin.core.units import format_tres
from tocsin.demo.jobs import Record
from tocsin.demo.machine import CLUSTER, NODE_TYPES, QUEUES
from tocsin.demo.people import GROUPS

__all__ = ["as_job"]


def as_job(record: Record) -> Job:
    """Only past events: no start while it waits, no end while it runs."""
    user, request = record.submission.user, record.request
    whole = bool(request.tasks) and record.task is None
    cpus = request.nodes * request.cpus_per_node
    gpus = request.nodes * request.gpus_per_node
    memory = request.memory or NODE_TYPES[QUEUES[request.partition].node_type].memory
    return Job(
        cluster=CLUSTER,
        job_id=record.job_id,
        task=record.task,
        submit=record.submit,
        raw_id=record.raw_id,
        array=request.array if whole else None,
        array_tasks=len(request.tasks) if whole else None,
        name=request.name,
        user=user.name,
        uid=user.uid,
        group=user.group,
        gid=GROUPS[user.group][0],
        account=request.account,
        partition=request.partition,
        qos="low" if QUEUES[request.partition].tier == 0 else "normal",
        command=f"{request.work_dir}/{request.file}" if request.file else None,
        submit_line=f"sbatch {request.file}"
        if request.file
        else f"srun -p {request.partition} -c {request.cpus_per_task} --pty bash",
        work_dir=request.work_dir,
        script=record.submission.sha,
        interactive=request.file is None,
        req_nodes=request.nodes,
        req_cpus=cpus,
        req_tasks=request.nodes * request.tasks_per_node,
        cpus_per_task=request.cpus_per_task,
        tasks_per_node=request.tasks_per_node,
        req_memory=request.memory,
        req_gpus=gpus,
        req_gres=f"gpu:{request.gpu_type}:{request.gpus_per_node}" if gpus else None,
        req_tres=_tres(cpus, memory, request.nodes, gpus),
        time_limit=request.time_limit,
        exclusive=request.exclusive,
        requeue=request.requeue,
        priority=record.priority,
        eligible=record.eligible,
        state=record.state,
        outcome=outcome_of(record.state),
        end=record.end,
        exit_code=record.exit_code,
        exit_signal=record.exit_signal,
        cancelled_by=record.cancelled_by,
        source="demo",
        request_final=False,
        **_allocation(record),
        **record.usage,
    )


def _allocation(record: Record) -> dict[str, Any]:
    if record.start is None:
        return {}
    request, node_type = record.request, NODE_TYPES[QUEUES[record.request.partition].node_type]
    nodes = len(record.nodes)
    cpus, memory, gpus = node_type.share(request)
    return {
        "start": record.start,
        "node_list": fold_nodes(record.nodes),
        "alloc_nodes": nodes,
        "alloc_cpus": nodes * cpus,
        "alloc_memory": memory,
        "alloc_gpus": nodes * gpus,
        "alloc_tres": _tres(nodes * cpus, memory, nodes, nodes * gpus),
    }


def _tres(cpus: int, memory: int, nodes: int, gpus: int) -> str:
    """As in Slurm: memory over all nodes."""
    resources = {"billing": cpus, "cpu": cpus, "mem": memory * nodes, "node": nodes}
    return format_tres(resources | ({"gres/gpu": gpus} if gpus else {}))
