"""Read job records of Slurm's JSON (as in v0.0.36) into core's fields.

Later versions override parts in `rest_versions`. Environments and comments are never read.
"""

import re
from collections.abc import Mapping
from typing import Any

from tocsin.core.units import memory_per_node
from tocsin.sources.json_steps import usage_of
from tocsin.sources.json_values import (
    ENDED_BY_SLURM,
    array_text,
    ended,
    exit_status,
    gpus,
    instant,
    job_name,
    limit,
    member,
    number,
    positive,
    state_of,
    tasks_in,
    text,
    tres_text,
    tres_total,
    words,
)

__all__ = ["Fields", "JobReader", "Record", "gres_as_written", "memory_on_each", "without_status"]

Record = Mapping[str, Any]
Fields = dict[str, Any]

_MET = re.compile(r"\((?:un)?fulfilled\)|\(failed\)")


class JobReader:
    """Reads jobs of accounting and of the queue; text in a number field raises ValueError."""

    exit_codes_reliable = False
    """Whether accounting gives true exit codes."""
    start_reliable = False
    """Whether accounting gives the true start."""
    reports_exclusive = True
    """Whether the queue shows which jobs want whole nodes."""

    def accounting_job(self, record: Record) -> Fields:
        time, array, het = member(record, "time"), member(record, "array"), member(record, "het")
        tres = member(record, "tres")
        state = state_of(member(record, "state").get("current"), requeued=True)
        over = ended(state)
        asked, got = tres_total(tres.get("requested")), tres_total(tres.get("allocated"))
        nodes, raw, array_id = (
            text(record.get("nodes")),
            positive(record.get("job_id")),
            positive(array.get("job_id")),
        )
        start = instant(time.get("start")) if self.start_reliable else _start(time, over)
        # A job requeued at once has nodes but no start; old versions give no start for running jobs either.
        start_missing = not over and not self.start_reliable
        ran = bool(nodes or got) and state != "PENDING" and (start is not None or start_missing)
        at_once = member(member(member(array, "limits"), "max"), "running").get("tasks")
        tasks = array_text(array.get("task"), at_once) if array_id else None
        code, signal = self._exit(record.get("exit_code")) if over else (None, None)
        certain = state == "COMPLETED" or state in ENDED_BY_SLURM or self.exit_codes_reliable
        if not signal and not certain:
            code = signal = None
        het_id = positive(het.get("job_id"))
        fields = {
            "cluster": text(record.get("cluster")),
            "job_id": array_id or raw,
            "task": number(array.get("task_id")) if array_id and not tasks else None,
            "submit": instant(time.get("submission")),
            "raw_id": raw,
            "array": tasks,
            "array_tasks": tasks_in(tasks),
            "het_id": het_id,
            "het_offset": number(het.get("job_offset")) if het_id else None,
            "name": job_name(record.get("name")),
            "user": text(record.get("user")) or text(member(record, "association").get("user")),
            "group": text(record.get("group")),
            "account": text(record.get("account")),
            "partition": text(record.get("partition")),
            "qos": text(record.get("qos")),
            "reservation": text(member(record, "reservation").get("name")),
            "submit_line": text(record.get("submit_line")),
            "work_dir": text(record.get("working_directory")),
            "req_nodes": asked.get("node"),
            "req_cpus": positive(member(record, "required").get("CPUs")) or asked.get("cpu"),
            "req_memory": memory_on_each(asked),
            "req_gpus": gpus(asked),
            "req_tres": tres_text(asked),
            "time_limit": limit(time.get("limit")),
            "constraints": text(record.get("constraints")),
            "licenses": text(record.get("licenses")),
            "priority": number(record.get("priority")),
            "eligible": instant(time.get("eligible")),
            "start": start if ran else None,
            "state": state,
            "end": instant(time.get("end")) if over else None,
            "exit_code": code,
            "exit_signal": signal,
            "cancelled_by": _user_number(record.get("kill_request_user")) if state == "CANCELLED" else None,
            "elapsed": number(time.get("elapsed")) if ran else None,
        }
        if ran:
            fields |= _allocation(nodes, got) | {"alloc_nodes": positive(record.get("allocation_nodes"))}
        if over:
            fields |= usage_of(record.get("steps"))
        return fields

    def _exit(self, value: Any) -> tuple[int | None, int | None]:
        found = value if type(value) is dict else {}
        signaled = found.get("status") == "SIGNALED"
        return 0, number(member(found, "signal").get("signal_id")) if signaled else 0

    def queue_job(self, record: Record) -> Fields:
        state = state_of(record.get("job_state"), requeued=False)
        over = ended(state)
        asked, got = tres_total(record.get("tres_req_str")), tres_total(record.get("tres_alloc_str"))
        nodes, raw, array_id = (
            text(record.get("nodes")),
            positive(record.get("job_id")),
            positive(record.get("array_job_id")),
        )
        ran = bool(nodes or got) and state != "PENDING"
        tasks = (
            array_text(record.get("array_task_string"), record.get("array_max_tasks")) if array_id else None
        )
        start, end = instant(record.get("start_time")), instant(record.get("end_time"))
        code, signal = self._queue_exit(record.get("exit_code")) if over else (None, None)
        if state in ENDED_BY_SLURM and code is not None:
            code = signal = 0
        het_id, batch = positive(record.get("het_job_id")), record.get("batch_flag")
        whole = over and ran and start and end and not positive(record.get("suspend_time"))
        fields = {
            "cluster": text(record.get("cluster")),
            "job_id": array_id or raw,
            "task": number(record.get("array_task_id")) if array_id and not tasks else None,
            "submit": instant(record.get("submit_time")),
            "raw_id": raw,
            "array": tasks,
            "array_tasks": tasks_in(tasks),
            "het_id": het_id,
            "het_offset": number(record.get("het_job_offset")) if het_id else None,
            "name": job_name(record.get("name")),
            "user": text(record.get("user_name")),
            "uid": number(record.get("user_id")),
            "group": text(record.get("group_name")),
            "gid": number(record.get("group_id")),
            "account": text(record.get("account")),
            "partition": text(record.get("partition")),
            "qos": text(record.get("qos")),
            "reservation": text(record.get("resv_name")),
            "command": text(record.get("command")),
            "work_dir": text(record.get("current_working_directory")),
            "interactive": None if type(batch) is not bool else not batch,
            "req_nodes": asked.get("node") or positive(record.get("node_count")),
            "req_cpus": asked.get("cpu") or positive(record.get("cpus")),
            "req_tasks": positive(record.get("tasks")),
            "cpus_per_task": positive(record.get("cpus_per_task")),
            "tasks_per_node": positive(record.get("tasks_per_node")),
            "req_memory": memory_on_each(asked),
            "req_gpus": gpus(asked),
            "req_gres": gres_as_written(record.get("tres_per_node"))
            or gres_as_written(record.get("tres_per_job")),
            "req_tres": tres_text(asked),
            "time_limit": limit(record.get("time_limit")),
            "time_min": limit(record.get("time_minimum")) or None,
            "dependency": without_status(record.get("dependency")),
            "constraints": text(record.get("features")),
            "licenses": text(record.get("licenses")),
            "req_node_list": text(record.get("required_nodes")),
            "exclude_nodes": text(record.get("excluded_nodes")),
            "exclusive": self._exclusive(record),
            "requeue": record.get("requeue") if type(record.get("requeue")) is bool else None,
            "priority": number(record.get("priority")),
            "eligible": instant(record.get("eligible_time")),
            "start": start if ran else None,
            "state": state,
            "end": end if over else None,
            "exit_code": code,
            "exit_signal": signal,
            "elapsed": end - start if whole and start and end else None,
        }
        if ran:
            fields |= _allocation(nodes, got) | {"alloc_nodes": got.get("node")}
        return fields

    def _queue_exit(self, value: Any) -> tuple[int | None, int | None]:
        return exit_status(number(value))

    def _exclusive(self, record: Record) -> bool | None:
        return "none" in words(record.get("shared"))


def _start(time: Record, over: bool) -> int | None:
    """Computed from the end; unknown while the job runs."""
    end, elapsed = instant(time.get("end")), number(time.get("elapsed"))
    if not over or end is None or elapsed is None:
        return None
    return end - elapsed - (number(time.get("suspended")) or 0)


def memory_on_each(resources: dict[str, int]) -> int | None:
    """Memory per node, from the amount for the whole job."""
    return (
        memory_per_node((resources["mem"], "job"), cpus=None, nodes=resources.get("node"))
        if "mem" in resources
        else None
    )


def _allocation(nodes: str | None, got: dict[str, int]) -> Fields:
    return {
        "node_list": nodes,
        "alloc_cpus": got.get("cpu"),
        "alloc_memory": memory_on_each(got),
        "alloc_gpus": gpus(got),
        "alloc_tres": tres_text(got),
    }


def gres_as_written(value: Any) -> str | None:
    """Generic resources as written, without Slurm's prefix `gres:`."""
    return text(re.sub(r"(^|,)gres[:/]", r"\1", value)) if type(value) is str else None


def without_status(value: Any) -> str | None:
    found = text(value)
    return found and text(_MET.sub("", found))


def _user_number(value: Any) -> int | None:
    """JSON gives a user name; only root's number is known without asking the system."""
    return 0 if value == "root" else None
