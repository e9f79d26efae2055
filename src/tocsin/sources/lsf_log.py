"""Reads LSF's `lsb.acct`: records of blank-separated fields, text in double quotes, with lists of variable length.

Field order: IBM Spectrum LSF, "lsb.acct", JOB_FINISH. Memory is in KiB (`maxRMem`, for the whole job), per host in MiB.
"""

import csv
import re
from typing import Any

from tocsin.sources.accounting_log import Unreadable, bytes_of, node_names, on_each, whole
from tocsin.sources.records import NO_NUMBER, WRONG_COLUMNS

__all__ = ["PATTERN", "LsfParser"]

PATTERN = re.compile(rb'"[A-Z_0-9]+" "[\d.]+" \d+ ')
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,9})?", re.ASCII)
_MEMORY = re.compile(r"\bmem=(\d{1,15}(?:\.\d{1,6})?)([KMGTkmgt]?)[Bb]?")
_GPUS = re.compile(r"\bngpus_physical=(\d{1,6})")
_DONE, _EXITED = "64", "32"
_USAGE_FIELDS = 19
_WITH_REASON = 6  # the first version that writes the reason of termination

_REASONS = {
    1: "PREEMPTED",
    2: "DEADLINE",  # the queue's run window closed
    3: "PREEMPTED",  # load threshold
    5: "TIMEOUT",
    6: "DEADLINE",
    8: "CANCELLED",
    9: "CANCELLED",
    10: "REQUEUED",
    11: "REQUEUED",
    12: "TIMEOUT",  # CPU time
    14: "CANCELLED",
    15: "CANCELLED",
    16: "OUT_OF_MEMORY",
    18: "NODE_FAIL",
    19: "NODE_FAIL",  # ended while LSF lost contact
    20: "OUT_OF_MEMORY",  # swap
    23: "CANCELLED",
    25: "LAUNCH_FAILED",  # no working directory
    26: "NODE_FAIL",
    27: "CANCELLED",  # its dependency can never be met
    28: "LAUNCH_FAILED",
    29: "LAUNCH_FAILED",
    30: "REVOKED",
    32: "LAUNCH_FAILED",
}
"""States by `exitInfo`, the reason of termination; any other means that the job itself failed."""


class LsfParser:
    name = "lsf"
    first_line: re.Pattern[str] | None = re.compile(PATTERN.pattern.decode())

    def continues_record(self, line: str, begun: bool) -> bool:
        """Whether a quoted text is still open at the end of the line."""
        return begun != (line.count('"') % 2 == 1)

    def parse(self, line: str) -> dict[str, Any] | str:
        fields = _Fields(line)
        kind = fields.text()
        if kind != "JOB_FINISH":
            if not re.fullmatch(r"[A-Z_0-9]{1,40}", kind):
                raise Unreadable(WRONG_COLUMNS)
            return kind
        return _job(fields)


class _Fields:
    """The fields of a line, one after another; a line that ends too early is unreadable."""

    def __init__(self, line: str) -> None:
        try:
            self._all = next(csv.reader([line], delimiter=" "), [])
        except csv.Error:
            raise Unreadable(WRONG_COLUMNS) from None
        self._place = 0

    def skip(self, number: int) -> None:
        self._place += number

    def text(self) -> str:
        if self._place >= len(self._all):
            raise Unreadable(WRONG_COLUMNS)
        self._place += 1
        return self._all[self._place - 1]

    def number(self) -> int | None:
        """None for -1, which means unknown."""
        text = self.text()
        if text.isdigit():
            return whole(text)
        if not _NUMBER.fullmatch(text):
            raise Unreadable(NO_NUMBER)
        return whole(text.partition(".")[0])

    def texts(self, number: int | None) -> list[str]:
        if number is None or number > len(self._all):
            raise Unreadable(NO_NUMBER)
        return [self.text() for _ in range(number)]


def _job(fields: _Fields) -> dict[str, Any]:
    text, number = fields.text, fields.number
    version = whole(text().partition(".")[0]) or 0
    end, job, uid, _, cpus, submit, begin, _, start = (number() for _ in range(9))
    user, queue, request, depend = (text() for _ in range(4))
    fields.skip(2)  # pre-execution command, submission host
    work_dir = text()
    fields.skip(4)  # files
    asked_hosts = fields.texts(number())
    slots = _slots(fields.texts(number()))
    status, _ = text(), text()
    name, command = text(), text()
    user_seconds, system_seconds = number(), number()
    fields.skip(_USAGE_FIELDS - 2)
    text()  # mail
    account, exit_status = text(), number()
    fields.skip(3)  # most processors, login shell, time event
    task, peak = number(), number()
    reason, rest = None, dict[str, Any]()
    if version >= _WITH_REASON:
        fields.skip(
            7
        )  # swap, spooled files, reservation, service class, exception mask, additional information
        reason = number()
        rest = _after_reason(fields)
    nodes = len(slots) or None
    needs = rest.get("needs") or request
    gpus = _GPUS.search(needs)
    ran = bool(start)
    made: dict[str, Any] = {
        "job_id": job,
        "task": task or None,
        "submit": submit or None,
        "start": start or None,
        "end": end or None,
        "name": name or command[:128] or None,
        "user": user or None,
        "uid": uid,
        "account": account or None,
        "partition": queue or None,
        "work_dir": work_dir or None,
        "dependency": depend or None,
        "begin": begin or None,
        "req_cpus": cpus or None,
        "req_memory": _memory(needs),
        "req_gpus": int(gpus[1]) * (nodes or 1) if gpus else None,
        "req_node_list": ",".join(asked_hosts) or None,
        "time_limit": rest.get("limit") or None,
        "state": _state(status, reason, ran),
    }
    if status in (_DONE, _EXITED) and exit_status is not None and exit_status < 2**31:
        made |= {"exit_code": exit_status // 256 % 256, "exit_signal": exit_status % 128}
    if ran:
        made |= {
            "node_list": node_names(slots),
            "alloc_nodes": nodes,
            "alloc_cpus": sum(slots.values()) or cpus,
            "elapsed": end - start if start and end is not None and end >= start else None,
            "user_cpu_seconds": user_seconds,
            "system_cpu_seconds": system_seconds,
            "cpu_seconds": None if user_seconds is None else user_seconds + (system_seconds or 0),
            "max_memory": rest.get("peak") or on_each(bytes_of(str(peak), unit="k") if peak else None, nodes),
        }
    return made


def _after_reason(fields: _Fields) -> dict[str, Any]:
    """Fields of newer versions: usage per host, the time limit, and the required resources; empty for older ones."""
    try:
        fields.skip(14)  # up to the job's description
        for _ in range(fields.number() or 0):
            fields.skip(2)  # extensions: key and value
        peak = 0
        for _ in range(fields.number() or 0):
            fields.skip(1)
            peak = max(peak, (fields.number() or 0) * 2**20)
            fields.skip(4)
        limit = fields.number()
        fields.skip(2)  # options, average memory
        return {"peak": peak, "limit": limit, "needs": fields.text()}
    except Unreadable:
        return {}


def _state(status: str, reason: int | None, ran: bool) -> str:
    if status == _DONE:
        return "COMPLETED"
    if status != _EXITED:
        return "UNKNOWN"
    return _REASONS.get(reason or 0, "FAILED" if ran else "CANCELLED")


def _memory(needs: str) -> int | None:
    found = _MEMORY.search(needs)
    return bytes_of(found[1], unit=found[2] or "m") if found else None


def _slots(hosts: list[str]) -> dict[str, int]:
    """Slots by host of `["16*n1", "n2", "n2"]`."""
    slots: dict[str, int] = {}
    for word in hosts:
        number, star, host = word.rpartition("*")
        slots[host] = min(slots.get(host, 0) + ((whole(number) or 1) if star else 1), 2**31)
    return slots
