"""The table of fields: what a job is, in which unit, and from which stage on each value is known.

`Job` is the table. Frames, SQL columns, JSON and import mappings are derived from it, so a new field is one line.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import partial
from types import MappingProxyType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage

__all__ = [
    "FIELDS",
    "KEY",
    "Bytes",
    "Field",
    "Instant",
    "Job",
    "Part",
    "Seconds",
    "ValueType",
    "fields_of",
    "value_type",
]


class ValueType(Enum):
    """The type of a value; each member's value is the unit."""

    TEXT = "text"
    COUNT = "count"
    NUMBER = "number"
    FLAG = "flag"
    INSTANT = "UTC epoch seconds"
    SECONDS = "seconds"
    BYTES = "bytes"


Instant = Annotated[int, ValueType.INSTANT]
Seconds = Annotated[int, ValueType.SECONDS]
Bytes = Annotated[int, ValueType.BYTES]


class Part(StrEnum):
    """What a field describes; the store merges each part by its own rule."""

    IDENTITY = "identity"  # the key: never changes
    REQUEST = "request"  # what was requested: frozen as first seen
    ALLOCATION = "allocation"  # what was allocated
    FIRST_METRICS = "first_metrics"  # usage in its first two minutes, as first measured
    OUTCOME = "outcome"  # its state, and how it ended
    USAGE = "usage"  # what it used
    RECORD = "record"  # facts about the record itself


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the table."""

    name: str
    type: ValueType
    part: Part
    stage: Stage
    doc: str

    @property
    def limit(self) -> bool:
        """Whether the value may be UNLIMITED."""
        return self.name in ("time_limit", "time_min")


_STAGES = {
    Part.IDENTITY: Stage.SUBMIT,
    Part.REQUEST: Stage.SUBMIT,
    Part.ALLOCATION: Stage.START,
    Part.FIRST_METRICS: Stage.EARLY,
    Part.OUTCOME: Stage.END,
    Part.USAGE: Stage.END,
    Part.RECORD: Stage.END,
}


def _known(part: Part, doc: str) -> Any:
    """A field of this part, known from the part's stage on."""
    if part is Part.IDENTITY:
        return dataclasses.field(metadata={"part": part, "doc": doc})
    return dataclasses.field(default=None, metadata={"part": part, "doc": doc})


_identity = partial(_known, Part.IDENTITY)
_request = partial(_known, Part.REQUEST)
_allocation = partial(_known, Part.ALLOCATION)
_first = partial(_known, Part.FIRST_METRICS)
_outcome = partial(_known, Part.OUTCOME)
_usage = partial(_known, Part.USAGE)
_record = partial(_known, Part.RECORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job of one cluster. Absent values are None; memory is per node; usage includes the steps."""

    cluster: str = _identity("name of the cluster")
    job_id: int = _identity("id; for a task of an array, the id of the array")
    task: int | None = _identity("index in the array; absent for plain jobs and for an array as submitted")
    submit: Instant = _identity("when it was submitted; a requeue is a new submission")

    raw_id: int | None = _request("id that slurmctld uses internally; differs from job_id for array tasks")
    array: str | None = _request("tasks of an array as submitted, such as 1-9%2")
    array_tasks: int | None = _request("number of tasks in that array")
    het_id: int | None = _request("id of the first component of a heterogeneous job")
    het_offset: int | None = _request("index of this component")
    name: str | None = _request("job name")
    user: str | None = _request("user name")
    uid: int | None = _request("user ID")
    group: str | None = _request("group name")
    gid: int | None = _request("group ID")
    account: str | None = _request("account charged")
    partition: str | None = _request("partition or queue")
    qos: str | None = _request("quality of service")
    reservation: str | None = _request("reservation")
    executable: str | None = _request("application or executable, if the source names one")
    command: str | None = _request("path of the script as submitted")
    submit_line: str | None = _request("submission command line")
    work_dir: str | None = _request("working directory")
    script: str | None = _request("SHA-256 of the script, which the store keeps")
    interactive: bool | None = _request("not a batch job")
    req_nodes: int | None = _request("nodes requested")
    req_cpus: int | None = _request("CPUs requested, over all nodes")
    req_tasks: int | None = _request("tasks (processes) requested")
    cpus_per_task: int | None = _request("CPUs per task")
    tasks_per_node: int | None = _request("tasks per node")
    req_memory: Bytes | None = _request("memory requested per node; 0 means all of the node's memory")
    req_gpus: int | None = _request("GPUs requested, over all nodes")
    req_gres: str | None = _request("generic resources as written, such as gpu:a100:2")
    req_tres: str | None = _request("trackable resources requested")
    time_limit: Seconds | None = _request("time limit requested")
    time_min: Seconds | None = _request("minimum time limit requested")
    begin: Instant | None = _request("earliest start requested")
    dependency: str | None = _request("jobs that it waits for, such as afterok:123")
    constraints: str | None = _request("node features requested")
    licenses: str | None = _request("licenses requested")
    req_node_list: str | None = _request("nodes requested by name")
    exclude_nodes: str | None = _request("nodes excluded by name")
    exclusive: bool | None = _request("requests whole nodes")
    requeue: bool | None = _request("may be requeued by the system")
    priority: int | None = _request("priority as first seen")

    eligible: Instant | None = _allocation("when it became eligible to start")
    start: Instant | None = _allocation("when it started")
    node_list: str | None = _allocation("allocated nodes, by name")
    alloc_nodes: int | None = _allocation("nodes allocated")
    alloc_cpus: int | None = _allocation("CPUs allocated")
    alloc_memory: Bytes | None = _allocation("memory allocated per node")
    alloc_gpus: int | None = _allocation("GPUs allocated")
    alloc_tres: str | None = _allocation("trackable resources allocated")
    segment: str | None = _allocation("part of the machine that it ran on, if the source names one")

    first_cpu_user: float | None = _first("share of its CPUs' time spent in user mode in the first 120 s")
    first_cpu_system: float | None = _first("share of its CPUs' time spent in the kernel in the first 120 s")
    first_memory: Bytes | None = _first("memory in use after 120 s, on the node that uses most")
    first_memory_peak: Bytes | None = _first(
        "most memory in use in the first 120 s, on the node that uses most"
    )
    first_read_bytes: Bytes | None = _first("bytes read from disk in the first 120 s, over all nodes")
    first_written_bytes: Bytes | None = _first("bytes written to disk in the first 120 s, over all nodes")
    first_page_faults: int | None = _first("page faults in the first 120 s, over all nodes")

    state: str | None = _outcome("state as Slurm names it")
    outcome: Outcome | None = _outcome("how it ended, by its state; absent until then")
    end: Instant | None = _outcome("when it ended")
    exit_code: int | None = _outcome("exit code of the script")
    exit_signal: int | None = _outcome("signal that ended it")
    cancelled_by: int | None = _outcome("ID of the user who cancelled it")

    elapsed: Seconds | None = _usage("run time, without suspended time")
    cpu_seconds: Seconds | None = _usage("CPU time used")
    user_cpu_seconds: Seconds | None = _usage("CPU time used in user mode")
    system_cpu_seconds: Seconds | None = _usage("CPU time used in the kernel")
    max_memory: Bytes | None = _usage(
        "peak resident memory per node, of its largest step, or the nearest that a log has"
    )
    read_bytes: Bytes | None = _usage("bytes read from disk")
    written_bytes: Bytes | None = _usage("bytes written to disk")
    energy: float | None = _usage("energy used, in joules")
    power: float | None = _usage("average power, in watts")
    idle_seconds: float | None = _usage("average idle time of its cores, in seconds")
    memory_bandwidth: float | None = _usage("memory traffic, in bytes per second")
    flops: float | None = _usage("floating-point operations per second")
    steps: int | None = _usage("number of steps")

    source: str | None = _record(
        "where the record came from: swf, sacct, rest, squeue, jobcomp, pbs, lsf, sge, table, demo"
    )
    known_at: Instant | None = _record("when its outcome became known to tocsin")
    request_final: bool | None = _record("the request is the final one from accounting, not as first seen")
    intervened: bool | None = _record(
        "tocsin held or cancelled it, so it is not used for training or figures"
    )

    @property
    def key(self) -> JobKey:
        return JobKey(self.cluster, self.job_id, self.task, self.submit)


_PLAIN_TYPES: dict[Any, ValueType] = {
    str: ValueType.TEXT,
    Outcome: ValueType.TEXT,
    int: ValueType.COUNT,
    float: ValueType.NUMBER,
    bool: ValueType.FLAG,
}


def value_type(hint: Any) -> ValueType:
    """The value type of a type hint such as `Instant | None`."""
    if get_origin(hint) is Annotated:
        found: ValueType = get_args(hint)[1]
        return found
    if isinstance(hint, UnionType) or get_origin(hint) is not None:
        return next(value_type(part) for part in get_args(hint) if part is not type(None))
    return _PLAIN_TYPES[hint]


def _table() -> dict[str, Field]:
    hints = get_type_hints(Job, include_extras=True)
    return {
        f.name: Field(
            f.name,
            value_type(hints[f.name]),
            f.metadata["part"],
            _STAGES[f.metadata["part"]],
            f.metadata["doc"],
        )
        for f in dataclasses.fields(Job)
    }


FIELDS: Mapping[str, Field] = MappingProxyType(_table())
KEY = tuple(name for name, field in FIELDS.items() if field.part is Part.IDENTITY)


def fields_of(*parts: Part) -> tuple[str, ...]:
    """The names of the fields of these parts, in the table's order."""
    return tuple(name for name, field in FIELDS.items() if field.part in parts)
