"""The columns of `tocsin jobs`: by sacct's names if it has them, and by the names of our fields."""

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

from tocsin.app.text import clock
from tocsin.cli.output import Column
from tocsin.core.errors import InputError
from tocsin.core.fields import FIELDS, ValueType
from tocsin.core.ids import JobKey
from tocsin.core.units import UNLIMITED, format_duration, format_memory

__all__ = ["DEFAULT", "columns", "needed_fields"]

DEFAULT = "JobID,JobName,User,Account,Partition,ReqCPUS,ReqMem,Timelimit,Elapsed,State,ExitCode"

_SACCT = {  # sacct's name: (our field, width)
    "JobName": ("name", 14),
    "User": ("user", 10),
    "UID": ("uid", 8),
    "Group": ("group", 10),
    "GID": ("gid", 8),
    "Account": ("account", 10),
    "Partition": ("partition", 10),
    "QOS": ("qos", 10),
    "Cluster": ("cluster", 10),
    "ReqCPUS": ("req_cpus", 8),
    "ReqNodes": ("req_nodes", 8),
    "ReqMem": ("req_memory", 9),
    "ReqTRES": ("req_tres", 20),
    "Timelimit": ("time_limit", 11),
    "Submit": ("submit", 19),
    "Eligible": ("eligible", 19),
    "Start": ("start", 19),
    "End": ("end", 19),
    "Elapsed": ("elapsed", 11),
    "AllocCPUS": ("alloc_cpus", 9),
    "NCPUS": ("alloc_cpus", 9),
    "AllocNodes": ("alloc_nodes", 10),
    "NNodes": ("alloc_nodes", 8),
    "AllocTRES": ("alloc_tres", 20),
    "NodeList": ("node_list", 15),
    "TotalCPU": ("cpu_seconds", 11),
    "UserCPU": ("user_cpu_seconds", 11),
    "SystemCPU": ("system_cpu_seconds", 11),
    "MaxRSS": ("max_memory", 10),
    "ConsumedEnergy": ("energy", 14),
    "WorkDir": ("work_dir", 20),
    "SubmitLine": ("submit_line", 20),
    "JobIDRaw": ("raw_id", 12),
    "Priority": ("priority", 10),
    "Reservation": ("reservation", 20),
    "Constraints": ("constraints", 20),
    "Outcome": ("outcome", 13),
}
_WIDTHS = {
    ValueType.TEXT: 12,
    ValueType.COUNT: 12,
    ValueType.NUMBER: 12,
    ValueType.FLAG: 6,
    ValueType.INSTANT: 19,
    ValueType.SECONDS: 11,
    ValueType.BYTES: 9,
}


def _job_id(row: dict[str, Any]) -> str:
    if row["het_id"] is not None and row["het_offset"] is not None:
        return f"{row['het_id']}+{row['het_offset']}"
    if row["task"] is not None:
        return f"{row['job_id']}_{row['task']}"
    return f"{row['job_id']}_[{row['array']}]" if row["array"] else str(row["job_id"])


def _state(row: dict[str, Any]) -> str:
    who = row["cancelled_by"]
    return f"{row['state'] or ''} by {who}" if who is not None else row["state"] or ""


def _exit_code(row: dict[str, Any]) -> str:
    if row["exit_code"] is None and row["exit_signal"] is None:
        return ""
    return f"{row['exit_code'] or 0}:{row['exit_signal'] or 0}"


def _key(row: dict[str, Any]) -> str:
    return str(JobKey(row["cluster"], row["job_id"], row["task"], row["submit"]))


def _minutes(row: dict[str, Any]) -> str:
    limit = row["time_limit"]
    return "" if limit is None else "UNLIMITED" if limit == UNLIMITED else str(limit // 60)


_COMBINED: dict[str, tuple[tuple[str, ...], int, Callable[[dict[str, Any]], str]]] = {
    "ElapsedRaw": (("elapsed",), 10, lambda row: "" if row["elapsed"] is None else str(row["elapsed"])),
    "TimelimitRaw": (("time_limit",), 12, _minutes),
    "JobID": (("job_id", "task", "array", "het_id", "het_offset"), 14, _job_id),
    "State": (("state", "cancelled_by"), 13, _state),
    "ExitCode": (("exit_code", "exit_signal"), 8, _exit_code),
    "Key": (("cluster", "job_id", "task", "submit"), 32, _key),
}
"""Columns of several fields, or in a unit of sacct: their fields, width and text."""

_BY_NAME = {
    name.lower(): name
    for names in ([f.replace("_", "") for f in FIELDS], FIELDS, _SACCT, _COMBINED)
    for name in names
} | {
    f.replace("_", ""): f
    for f in FIELDS
    if f.replace("_", "") not in {n.lower() for n in (*_SACCT, *_COMBINED)}
}


def columns(spec: str, zone: tzinfo) -> list[Column]:
    """The columns of `-o`: `JobID%20,State,req_memory`; ALL is every column that sacct has."""
    return [_column(item, zone) for item in _items(spec)]


def _items(spec: str) -> list[str]:
    named = [item.strip() for item in spec.split(",") if item.strip()]
    if not named:
        raise InputError("-o names no column; leave it out for the default ones")
    return [
        column for item in named for column in ((*_COMBINED, *_SACCT) if item.upper() == "ALL" else (item,))
    ]


def needed_fields(spec: str) -> list[str]:
    """The fields that these columns show."""
    fields: list[str] = []
    for item in _items(spec):
        name = _name(item.partition("%")[0])
        fields += _COMBINED[name][0] if name in _COMBINED else (_SACCT[name][0] if name in _SACCT else name,)
    return list(dict.fromkeys(fields))


def _name(text: str) -> str:
    found = _BY_NAME.get(text.lower())
    if found is None:
        raise InputError(
            f'"{text}" is not a column; the columns are {", ".join([*_COMBINED, *_SACCT])}, and every field that '
            "`tocsin job --json` prints"
        )
    return found


def _column(item: str, zone: tzinfo) -> Column:
    text, _, size = item.partition("%")
    name = _name(text)
    if size and not (re.fullmatch(r"-?[1-9]\d{0,3}", size, re.ASCII)):
        raise InputError(f'"{item}" needs a width from 1 to 9999 after the %, such as {text}%20')
    if name in _COMBINED:
        _, width, value = _COMBINED[name]
    else:
        field = _SACCT[name][0] if name in _SACCT else name
        width = _SACCT[name][1] if name in _SACCT else max(len(name), _WIDTHS[FIELDS[field].type])
        value = _value(field, zone)
    return Column(name, value, int(size) if size else width)


def _value(name: str, zone: tzinfo) -> Callable[[dict[str, Any]], str]:
    """How a field is shown: times as in sacct, in the cluster's time zone."""
    value_type = FIELDS[name].type
    shown: dict[ValueType, Callable[[Any], str]] = {
        ValueType.INSTANT: lambda v: clock(v, zone),
        ValueType.SECONDS: format_duration,
        ValueType.BYTES: _memory,
        ValueType.NUMBER: lambda v: f"{v:g}",
        ValueType.FLAG: lambda v: "yes" if v else "no",
    }
    show = shown.get(value_type, str)
    return lambda row: "" if row[name] is None else show(row[name])


def _memory(amount: int) -> str:
    """Exact if short, else in the unit that leaves at most four digits, as in sacct."""
    exact = format_memory(amount)
    if len(exact) <= 6:
        return exact
    for unit, size in (("T", 2**40), ("G", 2**30), ("M", 2**20)):
        if amount >= size:
            return f"{amount / size:.2f}{unit}"
    return f"{amount / 1024:.0f}K"
