"""Read the `accounting` file of Grid Engine (Sun, Son of, Univa, Altair): fields separated by colons, accounting(5).

Univa and later write instants in milliseconds. Peak memory is resident memory if recorded (Univa), else virtual memory,
which `h_vmem` limits, else that of the largest process. Only the first host is named; all slots are counted there.
"""

import re
from typing import Any

from tocsin.sources.accounting_log import Unreadable, bytes_of, seconds_of, whole
from tocsin.sources.records import NO_ID, WRONG_COLUMNS

__all__ = ["PATTERN", "GridEngineParser"]

_FIELDS = [
    "queue",
    "host",
    "group",
    "owner",
    "name",
    "job",
    "account",
    "priority",
    "submit",
    "start",
    "end",
    "failed",
    "status",
    "wallclock",
    "utime",
    "stime",
    "maxrss",
    "ixrss",
    "ismrss",
    "idrss",
    "isrss",
    "minflt",
    "majflt",
    "nswap",
    "inblock",
    "oublock",
    "msgsnd",
    "msgrcv",
    "nsignals",
    "nvcsw",
    "nivcsw",
    "project",
    "department",
    "pe",
    "slots",
    "task",
    "cpu",
    "mem",
    "io",
    "category",
    "iow",
    "pe_task",
    "maxvmem",
    "arid",
    "ar_submit",
    "job_class",
    "qdel",
    "rss",
]
_FEWEST = _FIELDS.index("maxvmem") + 1
PATTERN = re.compile(
    rb"[^:\s]+:[^:]*:[^:]*:[^:]*:[^:]*:\d+:[^:]*:-?\d+:\d+:\d+:\d+:\d+[^:]*:\d+:(?:[^:]*:){29}"
)
_MILLISECONDS = 10**11  # a larger number of seconds would be after the year 5138, so it is in milliseconds
_OPTION = re.compile(r"(?:^|\s)-l\s+(\S+)")
_LIMIT_EXCEEDED, _AFTER_JOB, _SIGNAL = 37, 100, 17
_STATES = {24: "REQUEUED", 25: "REQUEUED", 30: "FAILED"} | dict.fromkeys(range(12, 17), "FAILED")
_STATES |= dict.fromkeys(range(18, 23), "NODE_FAIL")
"""By `failed`, of sge_status(5): 12 to 16 are failures after the job's end; the others kept it from starting."""
_SIGNALS = 128
_BY_QDEL = (9, 15)


class GridEngineParser:
    name = "sge"
    first_line: re.Pattern[str] | None = None

    def continues_record(self, line: str, begun: bool) -> bool:  # noqa: ARG002  # each line is a record
        return False

    def parse(self, line: str) -> dict[str, Any] | str:
        values = dict(zip(_FIELDS, line.split(":"), strict=False))
        if len(values) < _FEWEST:
            raise Unreadable(WRONG_COLUMNS)
        if values["pe_task"] not in ("NONE", ""):
            return "task of a parallel job"
        job = whole(values["job"])
        if job is None:
            raise Unreadable(NO_ID)
        return {"job_id": job, "task": whole(values["task"]) or None, **_fields(values)}


def _fields(values: dict[str, str]) -> dict[str, Any]:
    def present(name: str) -> str | None:
        return values[name] if values[name] not in ("", "NONE") else None

    asked = _requests(values["category"])
    slots = whole(values["slots"]) or 1
    start, end = _instant(values["start"]), _instant(values["end"])
    elapsed = end - start if start and end and end >= start else None
    limit = seconds_of(asked.get("h_rt"))
    per_slot = next(
        (m for name in ("h_vmem", "m_mem_free", "mem_free", "h_rss") if (m := _size(asked.get(name)))), None
    )
    memory = per_slot * slots if per_slot and per_slot < 2**50 and slots < 2**20 else None
    peak = _size(values.get("rss")) or _size(values["maxvmem"]) or (_size(values["maxrss"]) or 0) * 1024
    failed, status = (
        whole(values["failed"].split()[0] if values["failed"].strip() else ""),
        whole(values["status"]),
    )
    reached = elapsed is not None and limit is not None and elapsed >= limit
    state = _state(failed, status, reached=reached, full=bool(memory and peak and peak >= memory))
    if state != "COMPLETED" and values.get("qdel", "NONE") not in ("NONE", ""):
        state = "CANCELLED"
    made: dict[str, Any] = {
        "submit": _instant(values["submit"]),
        "end": end,
        "name": present("name"),
        "user": present("owner"),
        "group": present("group"),
        "account": present("project") or present("account"),
        "partition": present("queue"),
        "req_cpus": slots,
        "req_memory": memory,
        "req_gpus": whole(asked.get("gpu")),
        "time_limit": limit,
        "state": state,
        "exit_code": status if status is not None and status <= _SIGNALS else None,
        "exit_signal": status - _SIGNALS if status is not None and status > _SIGNALS else None,
    }
    if start:
        made |= {
            "start": start,
            "node_list": present("host"),
            "alloc_nodes": 1 if slots == 1 else None,
            "alloc_cpus": slots,
            "elapsed": elapsed,
            "cpu_seconds": seconds_of(values["cpu"]),
            "user_cpu_seconds": seconds_of(values["utime"]),
            "system_cpu_seconds": seconds_of(values["stime"]),
            "max_memory": peak or None,
        }
    return made


def _state(failed: int | None, status: int | None, *, reached: bool, full: bool) -> str:
    """Limits and qdel end a job by the same signals; usage tells them apart."""
    if failed is None or status is None:
        return "UNKNOWN"
    if failed == _LIMIT_EXCEEDED:
        return "OUT_OF_MEMORY" if full and not reached else "TIMEOUT"
    if failed in (_AFTER_JOB, _SIGNAL):
        if reached or full:
            return "TIMEOUT" if reached else "OUT_OF_MEMORY"
        return "CANCELLED" if status - _SIGNALS in _BY_QDEL else "FAILED"
    if failed:
        return _STATES.get(failed, "LAUNCH_FAILED")
    return "FAILED" if status else "COMPLETED"


def _instant(text: str) -> int | None:
    value = whole(text.partition(".")[0])
    return None if not value else value // 1000 if value >= _MILLISECONDS else value


def _requests(category: str) -> dict[str, str]:
    """`-l h_rt=3600,h_vmem=4G` as a table; the first of a repeated name counts."""
    found: dict[str, str] = {}
    for options in _OPTION.findall(category):
        for option in options.split(","):
            name, _, value = option.partition("=")
            found.setdefault(name, value)
    return found


def _size(text: str | None) -> int | None:
    """Bytes; a capital letter means multiples of 1,024, a small one of 1,000, sge_types(1)."""
    if text and text[-1:] in "kmgt":
        number = bytes_of(text[:-1])
        return number * 1000 ** (" kmgt".index(text[-1])) if number is not None and number < 2**20 else None
    return bytes_of(text)
