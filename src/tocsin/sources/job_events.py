"""Job events as JSON: tocsin's own records, and those of Slurm's jobcomp/kafka.

Our record is a JSON object: `"schema": "tocsin.job/1"`, the fields of a job as `tocsin job --json` prints them (absent
ones may be omitted), and `script_text` with the script if it is sent. jobcomp/kafka sends one record when a job has
ended; its times are in UTC, its time limit in seconds.
"""

import json
from collections.abc import Mapping
from datetime import UTC
from typing import Any, NamedTuple

from tocsin.core.errors import UnitError
from tocsin.core.fields import FIELDS, Field, ValueType
from tocsin.core.outcomes import Outcome, outcome_of
from tocsin.core.units import UNLIMITED, parse_instant
from tocsin.sources.json_jobs import memory_on_each
from tocsin.sources.json_values import ended, gpus, number, positive, state_of, text, tres_text, tres_total

__all__ = ["SCHEMA_NAME", "JobEvent", "Unreadable", "event_document", "read_event"]

SCHEMA_NAME = "tocsin.job/1"
LARGEST = 8 * 2**20
"""Bytes; Slurm's default limit for a script is 4 MB."""

_LARGEST_NUMBER = 2**62
_OURS = frozenset({"known_at", "intervened"})
"""Set by the reader of a record."""
_TYPES: Mapping[ValueType, tuple[type, ...]] = {
    ValueType.TEXT: (str,),
    ValueType.COUNT: (int,),
    ValueType.NUMBER: (int, float),
    ValueType.FLAG: (bool,),
    ValueType.SECONDS: (int,),
    ValueType.BYTES: (int,),
}


class Unreadable(ValueError):
    """A record is not a job event; the reason is one of a few, so that they can be counted."""


class JobEvent(NamedTuple):
    fields: dict[str, Any]
    script: str | None = None


def read_event(data: bytes | None, cluster: str) -> JobEvent | None:
    """The job in a record; None for a job of another cluster. Raises Unreadable otherwise.

    A record without a cluster belongs to `cluster`.
    """
    if not data:
        raise Unreadable("empty record")
    if len(data) > LARGEST:
        raise Unreadable("record too long")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreadable("not JSON") from None
    if not isinstance(found, dict):
        raise Unreadable("not a JSON object")
    if found.get("schema") == SCHEMA_NAME:
        event = _own(found)
    elif "jobid" in found:
        event = _of_jobcomp(found)
    else:
        raise Unreadable("not a record of tocsin or jobcomp/kafka")
    fields = event.fields
    fields["cluster"] = fields.get("cluster") or cluster
    if fields["cluster"] != cluster:
        return None
    for name in ("job_id", "submit"):
        if fields.get(name) is None:
            raise Unreadable(f"no {name}")
    stated = fields.get("outcome")
    outcome = stated if stated in set(Outcome) else outcome_of(fields.get("state"))
    fields["outcome"] = outcome and str(outcome)
    return event


def event_document(row: Mapping[str, Any], script: str | None = None) -> dict[str, Any]:
    """A job as a record, without absent values."""
    from tocsin.core.job_json import to_json

    known = {name: value for name, value in row.items() if name in FIELDS and name not in _OURS}
    found = {name: value for name, value in to_json(known).items() if value is not None}
    more = {} if script is None else {"script_text": script}
    return {"schema": SCHEMA_NAME, "event": _event(row), **found, **more}


def _event(row: Mapping[str, Any]) -> str:
    if row.get("outcome") is not None:
        return "end"
    return "submit" if row.get("start") is None else "start"


def _own(found: Mapping[str, Any]) -> JobEvent:
    fields = {
        name: _value(FIELDS[name], found[name])
        for name in FIELDS
        if name not in _OURS and found.get(name) is not None
    }
    return JobEvent(fields, _script(found.get("script_text")))


def _value(field: Field, value: Any) -> Any:
    if field.type is ValueType.INSTANT:
        return _instant(field.name, value)
    if field.limit and value == "UNLIMITED":
        return UNLIMITED
    if type(value) not in _TYPES[field.type]:
        raise Unreadable(f"{field.name} has the wrong type")
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, int) and not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER:
        raise Unreadable(f"{field.name} out of range")
    return value


def _clean(value: str) -> str:
    """Text that can be stored: lone surrogates, which JSON can hold, are replaced."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _script(value: Any) -> str | None:
    return _clean(value) if isinstance(value, str) and value.strip() else None


def _instant(name: str, value: Any) -> int | None:
    try:
        return parse_instant(value, UTC) if isinstance(value, str) else number(value)
    except (UnitError, OverflowError):
        raise Unreadable(f"{name} is not a time") from None


def _of_jobcomp(found: Mapping[str, Any]) -> JobEvent:
    try:
        return _jobcomp(found)
    except Unreadable:
        raise
    except ValueError:  # with the value in its text
        raise Unreadable("a numeric field of jobcomp is not a number") from None


def _jobcomp(found: Mapping[str, Any]) -> JobEvent:
    state = state_of(found.get("state"), requeued=True)
    over = ended(state)
    asked, got = tres_total(found.get("tres_req")), tres_total(found.get("tres_alloc"))
    array, het = positive(found.get("array_job_id")), positive(found.get("het_job_id"))
    start, end = (_instant(name, found.get(name)) for name in ("@start", "@end"))
    nodes = text(found.get("nodes"))
    ran = bool(nodes) and start is not None and not (over and end is not None and start > end)
    code, _, signal = str(found.get("exit_code") or ":").partition(":")
    raw, script = positive(found.get("jobid")), _script(found.get("script"))
    limit = number(found.get("time_limit"))
    fields = {
        "cluster": text(found.get("cluster")),
        "job_id": array or raw,
        "task": number(found.get("array_task_id")) if array else None,
        "submit": _instant("@submit", found.get("@submit")),
        "raw_id": raw,
        "het_id": het,
        "het_offset": number(found.get("het_job_offset")) if het else None,
        "name": text(found.get("job_name")),
        "user": text(found.get("username")),
        "uid": number(found.get("user_id")),
        "group": text(found.get("groupname")),
        "gid": number(found.get("group_id")),
        "account": text(found.get("account")),
        "partition": text(found.get("partition")),
        "qos": text(found.get("qos")),
        "reservation": text(found.get("reservation_name")),
        "work_dir": text(found.get("work_dir")),
        "interactive": None if script is None else False,
        "req_nodes": asked.get("node"),
        "req_cpus": asked.get("cpu"),
        "req_tasks": positive(found.get("ntasks")),
        "cpus_per_task": positive(found.get("cpus_per_task")),
        "tasks_per_node": positive(found.get("ntasks_per_node")),
        "req_memory": memory_on_each(asked),
        "req_gpus": gpus(asked),
        "req_tres": tres_text(asked),
        "time_limit": UNLIMITED if limit is None else limit,
        "dependency": text(found.get("orig_dependency")),
        "constraints": text(found.get("features")),
        "exclude_nodes": text(found.get("excluded_nodes")),
        "priority": number(found.get("priority")),
        "eligible": _instant("@eligible", found.get("@eligible")),
        "state": state,
        "end": end if over else None,
        "exit_code": number(code) if over and code.isdecimal() else None,
        "exit_signal": number(signal) if over and signal.isdecimal() else None,
        "source": "jobcomp",
        "request_final": True,
    }
    if ran:
        fields |= {
            "start": start,
            "node_list": nodes,
            "alloc_nodes": positive(found.get("total_nodes")),
            "alloc_cpus": positive(found.get("total_cpus")),
            "alloc_memory": memory_on_each(got),
            "alloc_gpus": gpus(got),
            "alloc_tres": tres_text(got),
            "elapsed": number(found.get("elapsed")) if over else None,
        }
    return JobEvent(fields, script)
