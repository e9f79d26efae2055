"""Reads the log of Slurm's jobcomp/filetxt: `JobId=… UserId=… … ExitCode=…`, one record for each job that ended.

The keys always come in the same order. A job name may hold blanks, line ends and keys, so records are read from their end.
Compared with 22.05; older releases write Gres for Tres.
"""

import re
from datetime import tzinfo
from typing import Any

from tocsin.core.errors import UnitError
from tocsin.core.units import parse_duration, parse_instant, parse_tres
from tocsin.sources.accounting_log import Unreadable, on_each, whole
from tocsin.sources.records import NO_TIME, WRONG_COLUMNS

__all__ = ["PATTERN", "JobcompParser"]

PATTERN = re.compile(rb"JobId=\d+ UserId=")
_END = re.compile(r" ExitCode=\d+:\d+\s*$", re.ASCII)
_LEFT = re.compile(
    r"JobId=(\d{1,18}) UserId=([^\n(]*)\((\d{1,10})\) GroupId=([^\n(]*)\((\d{1,10})\) Name=", re.ASCII
)
_KEYS = (
    *(
        "JobState",
        "Partition",
        "TimeLimit",
        "StartTime",
        "EndTime",
        "NodeList",
        "NodeCnt",
        "ProcCnt",
        "WorkDir",
    ),
    *("ReservationName", "Tres", "Account", "QOS", "WcKey", "Cluster", "SubmitTime", "EligibleTime"),
    *("DerivedExitCode", "ExitCode"),
)
_CODE = re.compile(r"(\d{1,3}):(\d{1,3})\s*", re.ASCII)
_MEMBER = re.compile(
    r" (ArrayJobId|ArrayTaskId|(?:Het|Pack)JobId|(?:Het|Pack)JobOffset)=(\d{1,10})", re.ASCII
)


class JobcompParser:
    name = "jobcomp"
    first_line: re.Pattern[str] | None = re.compile(PATTERN.pattern.decode())

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def continues_record(self, line: str, begun: bool) -> bool:  # noqa: ARG002  # every line shows whether it is the last
        return not _END.search(line[-100:])

    def parse(self, line: str) -> dict[str, Any] | str:
        left = _LEFT.match(line)
        values = None if left is None else _values(line, left.end())
        code = _CODE.fullmatch(values["ExitCode"]) if values else None
        if left is None or values is None or code is None:
            raise Unreadable(WRONG_COLUMNS)
        eligible, *_ = values["EligibleTime"].split(" ")
        member = {
            key.replace("Pack", "Het"): int(number) for key, number in _MEMBER.findall(values["EligibleTime"])
        }
        start, end, submit = (self._instant(values[key]) for key in ("StartTime", "EndTime", "SubmitTime"))
        ran = values["NodeList"] not in ("", "(null)")
        asked = _resources(values["Tres"])
        return {
            "cluster": values["Cluster"] or None,
            "job_id": member.get("ArrayJobId", int(left[1])),
            "task": member.get("ArrayTaskId"),
            "raw_id": int(left[1]),
            "het_id": member.get("HetJobId"),
            "het_offset": member.get("HetJobOffset"),
            "submit": submit,
            "eligible": self._instant(eligible),
            "start": start if ran else None,
            "end": end,
            "elapsed": end - start if ran and start is not None and end is not None else None,
            "user": left[2],
            "uid": int(left[3]),
            "group": left[4],
            "gid": int(left[5]),
            "name": values["Name"],
            "state": values["JobState"],
            "partition": values["Partition"] or None,
            "account": values["Account"] or None,
            "qos": values["QOS"] or None,
            "reservation": values["ReservationName"] or None,
            "work_dir": values["WorkDir"] or None,
            "time_limit": _limit(values["TimeLimit"]),
            "req_nodes": asked.get("node"),
            "req_cpus": asked.get("cpu"),
            "req_memory": on_each(asked.get("mem"), asked.get("node")),
            "req_gpus": asked.get("gres/gpu"),
            "node_list": values["NodeList"] if ran else None,
            "alloc_nodes": whole(values["NodeCnt"]) if ran else None,
            "alloc_cpus": whole(values["ProcCnt"]) if ran else None,
            "exit_code": int(code[1]),
            "exit_signal": int(code[2]),
        }

    def _instant(self, text: str) -> int | None:
        try:
            return parse_instant(text, self._zone)
        except UnitError:
            raise Unreadable(NO_TIME) from None


def _values(line: str, begin: int) -> dict[str, str] | None:
    """The values by key, from the last key to the first: a name cannot hide what comes after it."""
    found, end = dict[str, str](), len(line)
    for key in reversed(_KEYS):
        mark = f" {key}="
        at = line.rfind(mark, begin, end)
        if at < 0 and key == "Tres":
            mark = " Gres="
            at = line.rfind(mark, begin, end)
        if at < 0:
            return None
        found[key] = line[at + len(mark) : end]
        end = at
    return found | {"Name": line[begin:end]}


def _resources(text: str) -> dict[str, int]:
    try:
        return dict(parse_tres(text))
    except UnitError:
        return {}


def _limit(text: str) -> int | None:
    try:
        return parse_duration(text)
    except UnitError:
        return None
