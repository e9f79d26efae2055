"""Reads the queue from squeue's text: few fields, and separators that no field can contain."""

import re
import secrets
from typing import Any

import polars as pl

from tocsin.core.errors import ClusterError
from tocsin.core.frames import SCHEMA, conform, outcome_from_state
from tocsin.core.units import parse_duration
from tocsin.sources.columns import by_value
from tocsin.sources.json_jobs import gres_as_written, memory_on_each, without_status
from tocsin.sources.json_values import (
    ABSENT,
    ENDED_BY_SLURM,
    ended,
    exit_status,
    gpus,
    job_name,
    printed_code,
    state_of,
    tasks_in,
    tres_text,
    tres_total,
)

__all__ = ["FIELDS", "QUEUE_ENV", "QueueText", "queue_command", "read_queue", "separators"]

_NAMES = """
JobID ArrayJobID ArrayTaskID HetJobID HetJobOffset State SubmitTime EligibleTime StartTime EndTime TimeLimit
MinTime tres-alloc NumTasks cpus-per-task NTPerNode NodeList exit_code tres-per-node tres-per-job
OverSubscribe BatchFlag Requeue PriorityLong UserName UserID GroupName GroupID Account Partition QOS
Reservation Feature Licenses ReqNodes Dependency Cluster Name Command WorkDir
"""
FIELDS = tuple(_NAMES.split())
QUEUE_ENV = {"SLURM_BITSTR_LEN": "0"}  # else squeue truncates an array's tasks after 64 characters
_NO_VAL = 2**32 - 2


def separators() -> tuple[str, str]:
    """Separators of fields and records, random each time: a job name cannot forge a record."""
    mark = secrets.token_hex(8)
    return f"\x1f{mark}\x1f", f"\x1e{mark}\x1e"


def queue_command(between: str, after: str) -> list[str]:
    """`:0` prints a field in full, without padding; text after it is printed literally."""
    form = ",".join(f"{name}:0{between}" for name in FIELDS[:-1]) + f",{FIELDS[-1]}:0{after}"
    return ["squeue", "-h", "-a", "-t", "all", "-O", form]


def read_queue(output: bytes, between: str, after: str, *, cluster: str) -> pl.DataFrame:
    """squeue's records as jobs. A pending array is one record; for a running job, squeue shows no request in TRES."""
    text = output.decode("utf-8", "replace")
    records = pl.Series(
        "record", [part.removeprefix("\n") for part in text.split(after)[:-1]], dtype=pl.String
    )
    if not len(records):
        return pl.DataFrame(schema=SCHEMA)
    words = records.str.split_exact(between, len(FIELDS)).struct.unnest()
    if words[f"field_{len(FIELDS)}"].is_not_null().any() or words[f"field_{len(FIELDS) - 1}"].is_null().any():
        raise ClusterError("unexpected output of squeue; is it Slurm 20.11 or newer?")
    names = words[f"field_{FIELDS.index('Name')}"]
    words = words.with_columns(
        pl.when(pl.all().is_in(list(ABSENT))).then(None).otherwise(pl.all()).name.keep()
    )
    column = {name: words[f"field_{place}"] for place, name in enumerate(FIELDS)} | {"Name": names}
    return conform(pl.DataFrame(_columns(column, cluster)))


class QueueText:
    """Parses squeue's answers; an unchanged answer is not parsed again."""

    def __init__(self) -> None:
        self._last: tuple[bytes, pl.DataFrame] | None = None

    def read(self, output: bytes, between: str, after: str, *, cluster: str) -> pl.DataFrame:
        plain = output
        for mark in (between.encode(), after.encode()):
            if output.count(mark[:1]) != 2 * output.count(mark):  # a job's own text has such a character
                return read_queue(output, between, after, cluster=cluster)
            plain = plain.replace(mark, mark[:1])
        if self._last is None or self._last[0] != plain:
            self._last = plain, read_queue(output, between, after, cluster=cluster)
        return self._last[1]


def _columns(column: dict[str, pl.Series], cluster: str) -> dict[str, pl.Series]:
    def whole(name: str) -> pl.Series:
        number = column[name].cast(pl.Int64, strict=False)
        return number.set((number >= _NO_VAL).fill_null(False), None)

    def each(name: str, read: Any, dtype: Any = pl.String) -> pl.Series:
        return by_value(column[name], read, dtype).values

    state = each("State", lambda text: state_of(text, requeued=False))
    over = by_value(state, ended, pl.Boolean).values.fill_null(False)
    pending = (state == "PENDING").fill_null(False)
    ran = column["NodeList"].is_not_null() & ~pending
    task = column["ArrayTaskID"].cast(pl.Int64, strict=False)
    array = column["ArrayTaskID"].set(task.is_not_null(), None)
    resources = by_value(column["tres-alloc"], _resources, _RESOURCES).values.struct.unnest()
    code = by_value(column["exit_code"], _exit, _EXIT).values.struct.unnest()
    by_slurm = state.is_in(list(ENDED_BY_SLURM)).fill_null(False)
    times = {name: _no_zero(whole(name)) for name in ("SubmitTime", "EligibleTime", "StartTime", "EndTime")}
    start, end = times["StartTime"].set(~ran, None), times["EndTime"].set(~over, None)
    minimum = each("MinTime", parse_duration, pl.Int64)
    asked = {f"req_{name}": resources[name].set(~pending, None) for name in _RESOURCES_OF_A_JOB}
    got = {f"alloc_{name}": resources[name].set(~ran, None) for name in _RESOURCES_OF_A_JOB}
    return {
        "cluster": column["Cluster"].fill_null(cluster),
        "job_id": whole("ArrayJobID"),
        "task": task,
        "submit": times["SubmitTime"],
        "raw_id": whole("JobID"),
        "array": array,
        "array_tasks": by_value(array, tasks_in).values,
        "het_id": whole("HetJobID"),
        "het_offset": whole("HetJobOffset"),
        "name": each("Name", job_name),
        "user": column["UserName"],
        "uid": whole("UserID"),
        "group": column["GroupName"],
        "gid": whole("GroupID"),
        "account": column["Account"],
        "partition": column["Partition"],
        "qos": column["QOS"],
        "reservation": column["Reservation"],
        "command": column["Command"],
        "work_dir": column["WorkDir"],
        "interactive": column["BatchFlag"] == "0",
        "req_tasks": whole("NumTasks"),
        "cpus_per_task": _no_zero(whole("cpus-per-task")),
        "tasks_per_node": _no_zero(whole("NTPerNode")),
        "req_gres": each("tres-per-node", gres_as_written).zip_with(
            column["tres-per-node"].is_not_null(), each("tres-per-job", gres_as_written)
        ),
        "time_limit": each("TimeLimit", parse_duration, pl.Int64),
        "time_min": _no_zero(minimum),
        "dependency": each("Dependency", without_status),
        "constraints": column["Feature"],
        "licenses": column["Licenses"],
        "req_node_list": column["ReqNodes"],
        "exclusive": column["OverSubscribe"] == "NO",
        "requeue": column["Requeue"] == "1",
        "priority": whole("PriorityLong"),
        "eligible": times["EligibleTime"],
        "start": start,
        "node_list": column["NodeList"].set(~ran, None),
        "state": state,
        "outcome": state.to_frame("state").select(outcome_from_state(pl.col("state"))).to_series(),
        "end": end,
        "exit_code": code["code"].set(by_slurm, 0).set(~over, None),
        "exit_signal": code["signal"].set(by_slurm, 0).set(~over, None),
        "source": pl.repeat("squeue", len(state), eager=True),
        "request_final": pl.repeat(False, len(state), eager=True),
        **asked,
        **got,
    }


_RESOURCES_OF_A_JOB = ("nodes", "cpus", "memory", "gpus", "tres")
_RESOURCES = pl.Struct({name: pl.String if name == "tres" else pl.Int64 for name in _RESOURCES_OF_A_JOB})
_EXIT = pl.Struct({"code": pl.Int64, "signal": pl.Int64})


def _resources(text: str) -> dict[str, Any]:
    found = tres_total(text)
    return {
        "nodes": found.get("node"),
        "cpus": found.get("cpu"),
        "memory": memory_on_each(found),
        "gpus": gpus(found),
        "tres": tres_text(found),
    }


def _exit(text: str) -> dict[str, int | None]:
    """The result of wait(2) as a number; since 26.05 `code:signal`."""
    numbers = [int(part) for part in text.split(":") if re.fullmatch(r"\d{1,9}", part, re.ASCII)]
    if len(numbers) == 2:
        return {"code": printed_code(numbers[0]), "signal": numbers[1]}
    code, signal = exit_status(numbers[0] if numbers else None)
    return {"code": code, "signal": signal}


def _no_zero(numbers: pl.Series) -> pl.Series:
    return numbers.set((numbers == 0).fill_null(False), None)
