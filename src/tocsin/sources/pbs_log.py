"""Reads the accounting logs of PBS Pro, OpenPBS and Torque: `MM/DD/YYYY HH:MM:SS;E;ID;key=value …`.

Amounts are for the whole job there; memory is divided evenly over its nodes. PBS Professional Reference Guide,
"The Accounting Log"; Torque Administrator Guide, "Accounting records" and `pbs_job.h` for the exit codes.
"""

import re
from typing import Any

from tocsin.sources.accounting_log import Unreadable, bytes_of, node_names, on_each, seconds_of, whole
from tocsin.sources.records import NO_ID, WRONG_COLUMNS

__all__ = ["PATTERN", "PbsParser"]

PATTERN = re.compile(rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z]{1,2};")
_LINE = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Za-z]{1,2});([^;]*);(.*)")
_ID = re.compile(r"(\d{1,18})(?:\[(\d{0,10})\]|-(\d{1,10}))?(?:\.([^.]*).*)?")
_VALUE = re.compile(r'(?<!\S)([\w.]+)=("[^"]*"|\S*)')
_CHUNK = re.compile(r"^(?P<n>\d{1,9})(?=:|$)|:ppn=(?P<ppn>\d{1,9})|:gpus=(?P<gpus>\d{1,9})")
_WHOLE_ARRAY = "summary of an array, whose tasks have records of their own"
_SIGNALS = 256  # a larger exit status is this plus a signal
_TERMINATED, _KILLED = 15, 9

_STATES = {
    0: "COMPLETED",
    -3: "REQUEUED",
    -16: "REQUEUED",
    -18: "REQUEUED",
    -24: "FAILED",  # used more CPUs than requested
    -25: "FAILED",
    -26: "OUT_OF_MEMORY",  # virtual memory
    -27: "OUT_OF_MEMORY",
    -28: "TIMEOUT",  # CPU time
    -29: "TIMEOUT",
}
_TORQUE = {-10: "OUT_OF_MEMORY", -11: "TIMEOUT", -12: "TIMEOUT"}
_PRO = {-11: "REQUEUED", -12: "FAILED"}


class PbsParser:
    name = "pbs"
    first_line: re.Pattern[str] | None = None

    def continues_record(self, line: str, begun: bool) -> bool:  # noqa: ARG002  # each line is a record
        return False

    def __init__(self) -> None:
        self._deleted: set[str] = set()
        """Ids of deleted jobs; the end of a running one follows."""

    def parse(self, line: str) -> dict[str, Any] | str:
        found = _LINE.fullmatch(line)
        if not found:
            raise Unreadable(WRONG_COLUMNS)
        kind, job, rest = found.groups()
        if kind == "D":
            self._deleted.add(job)
        if kind != "E":
            return kind
        identity = _ID.fullmatch(job)
        if not identity:
            raise Unreadable(NO_ID)
        number, index, old_index, server = identity.groups()
        if index == "":
            raise Unreadable(_WHOLE_ARRAY)
        values = {key: value.strip('"') for key, value in _VALUE.findall(rest)}
        deleted = job in self._deleted
        self._deleted.discard(job)
        return {
            "job_id": int(number),
            "task": whole(index or old_index),
            "cluster": server or None,
            **_fields(values, deleted),
        }


def _fields(values: dict[str, str], deleted: bool) -> dict[str, Any]:
    asked = {
        key.removeprefix("Resource_List."): v for key, v in values.items() if key.startswith("Resource_L")
    }
    used = {
        key.removeprefix("resources_used."): v for key, v in values.items() if key.startswith("resources_u")
    }
    slots = _slots(values.get("exec_host", ""))
    chunks = _chunks(asked.get("nodes", ""))
    cpus = sum(n * ppn for n, ppn, _ in chunks) if "ppn" in asked.get("nodes", "") else None
    cpus = cpus or whole(asked.get("ncpus")) or whole(asked.get("procs")) or None
    nodes = whole(asked.get("nodect")) or sum(n for n, _, _ in chunks) or None
    over = nodes or len(slots) or None
    per_process = bytes_of(asked.get("pmem"))
    total = per_process * cpus if per_process and cpus else per_process
    memory = on_each(bytes_of(asked.get("mem")) or total, over)
    submit, queued, eligible, start, end = (
        whole(values.get(name, "").partition(".")[0]) for name in ("ctime", "qtime", "etime", "start", "end")
    )  # Cobalt writes fractions of a second
    status = _status(values.get("Exit_status"))
    limit, peak = seconds_of(asked.get("walltime")), on_each(bytes_of(used.get("mem")), len(slots) or over)
    elapsed = end - start if start and end is not None and end >= start else None
    fields: dict[str, Any] = {
        "submit": submit or queued,
        "eligible": eligible or None,
        "start": start or None,
        "end": end,
        "name": values.get("jobname"),
        "user": values.get("user"),
        "group": values.get("group"),
        "account": values.get("account") or values.get("project"),
        "partition": values.get("queue"),
        "reservation": values.get("resvID"),
        "req_nodes": nodes,
        "req_cpus": cpus,
        "req_memory": memory,
        "req_gpus": whole(asked.get("ngpus")) or sum(n * gpus for n, _, gpus in chunks) or None,
        "time_limit": limit,
        "dependency": values.get("depend") or None,
        "elapsed": elapsed,
        "cpu_seconds": seconds_of(used.get("cput")),
        "max_memory": peak or None,
    }
    if start:
        fields |= {
            "node_list": node_names(slots),
            "alloc_nodes": len(slots) or None,
            "alloc_cpus": sum(slots.values()) or None,
        }
    torque = "exec_vnode" not in values and "run_count" not in values
    timed_out = limit is not None and elapsed is not None and elapsed >= limit
    state = _state(status, torque=torque, deleted=deleted, timed_out=timed_out, full=_full(peak, memory))
    code = None if status is None else status if 0 <= status < _SIGNALS else None
    signal = status - _SIGNALS if status is not None and status >= _SIGNALS else None
    return fields | {"state": state, "exit_code": code, "exit_signal": 0 if code is not None else signal}


def _state(status: int | None, *, torque: bool, deleted: bool, timed_out: bool, full: bool) -> str:
    """PBS stops a job at its limit and on qdel by the same signals, so limits and deletions tell them apart."""
    if status is None:
        return "UNKNOWN"
    if status < 0:
        return (_STATES | (_TORQUE if torque else _PRO)).get(status, "LAUNCH_FAILED")
    if status >= _SIGNALS and status - _SIGNALS in (_TERMINATED, _KILLED):
        if timed_out or full:
            return "TIMEOUT" if timed_out else "OUT_OF_MEMORY"
        return "CANCELLED" if deleted or status - _SIGNALS == _TERMINATED else "FAILED"
    if status and timed_out:
        return "TIMEOUT"
    return "CANCELLED" if status and deleted else _STATES.get(status, "FAILED")


def _full(peak: int | None, memory: int | None) -> bool:
    return bool(peak and memory and peak >= memory)


def _status(text: str | None) -> int | None:
    number = whole((text or "").removeprefix("-"))
    return None if number is None or number > 2**31 else -number if (text or "").startswith("-") else number


def _chunks(nodes: str) -> list[tuple[int, int, int]]:
    """Nodes, processors and GPUs per node of each part of `2:ppn=8+1:ppn=4:gpus=1`; a name counts as one node."""
    found = []
    for part in filter(None, nodes.split("+")):
        counts = {match.lastgroup: int(match[0].rpartition("=")[2]) for match in _CHUNK.finditer(part)}
        found.append((counts.get("n", 1), counts.get("ppn", 1), counts.get("gpus", 0)))
    return found


def _slots(hosts: str) -> dict[str, int]:
    """CPUs by host of `n1/0*8+n2/0-3+n3/1,2+n4/5+n4/6`."""
    slots: dict[str, int] = {}
    for part in hosts.split("+"):
        host, slash, places = part.partition("/")
        if not host or not slash:
            continue
        for place in places.split(","):
            first, dash, last = place.partition("-")
            number = whole(place.partition("*")[2]) if "*" in place else 1
            if dash:
                number = max(1, (whole(last) or 0) - (whole(first) or 0) + 1)
            slots[host] = min(slots.get(host, 0) + (number or 1), 2**31)
    return slots
