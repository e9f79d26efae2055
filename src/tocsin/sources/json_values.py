"""Single values in Slurm's JSON, read the same way in all versions.

A number is plain (until v0.0.38) or `{set, infinite, number}` (since); a list used to be text; absent is null, "",
"(null)", -2, or one of the huge numbers NO_VAL. Anything else is absent too. Text in a number field
raises ValueError: the record is rejected.
"""

import math
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tocsin.core.errors import UnitError
from tocsin.core.ids import array_size
from tocsin.core.outcomes import STATES, Outcome
from tocsin.core.units import UNLIMITED, format_tres, parse_tres

__all__ = [
    "ABSENT",
    "ENDED_BY_SLURM",
    "MEGABYTE",
    "amount",
    "array_text",
    "ended",
    "exit_status",
    "gpus",
    "gpus_in",
    "instant",
    "job_name",
    "limit",
    "member",
    "number",
    "positive",
    "printed_code",
    "read_release",
    "state_of",
    "tasks_in",
    "text",
    "tres_text",
    "tres_total",
    "words",
]

MEGABYTE = 2**20
ABSENT = frozenset(
    {"", "(null)", "None assigned", "N/A", "n/a", "None", "NONE", "Unknown", "UNKNOWN", "INVALID", "NOT_SET"}
)
_NO_VAL = frozenset({2**32 - 2, 2**32 - 1})  # NO_VAL and INFINITE of slurm.h
_LARGEST = 2**63 - 1
_FLAGS = frozenset(
    {
        "COMPLETING",
        "CONFIGURING",
        "EXPEDITING",
        "POWER_UP_NODE",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "RESIZING",
        "RESV_DEL_HOLD",
        "SIGNALING",
        "SPECIAL_EXIT",
        "STAGE_OUT",
        "STOPPED",
        "UPDATE_DB",
    }
)
"""Flags that a list of states may have besides the state itself."""
ENDED_BY_SLURM = frozenset({"CANCELLED", "DEADLINE", "PREEMPTED", "REQUEUED", "TIMEOUT"})
"""States of jobs that slurmctld ended: accounting has their exit as 0:0, because it is told before the job has died. The
queue shows the signal afterwards (15 on 22.05)."""
_EMPTY: Mapping[str, Any] = {}


def member(value: Any, name: str) -> Mapping[str, Any]:
    """The object with this name in a record; an empty one if absent."""
    found = value.get(name)
    return found if type(found) is dict else _EMPTY


def amount(value: Any) -> int | None:
    """A whole number of any size."""
    kind = type(value)
    if kind is int:
        return value if -_LARGEST <= value < _LARGEST else None
    if kind is dict:
        return None if not value.get("set", True) or value.get("infinite") else amount(value.get("number"))
    if kind is float:
        return int(value) if math.isfinite(value) and abs(value) < _LARGEST else None
    if kind is str:
        word = value.strip()
        if word in ABSENT or word.upper() in ("UNLIMITED", "INFINITE"):
            return None
        if not word.isascii() or len(word) > 20:
            raise ValueError(f'"{word[:40]}" is not a number')
        return amount(int(word))
    return None


def number(value: Any) -> int | None:
    """A count of zero or more; Slurm's values for "not set" are absent."""
    found = amount(value)
    return None if found is None or found < 0 or found in _NO_VAL else found


def positive(value: Any) -> int | None:
    """A count; zero means absent."""
    return number(value) or None


def instant(value: Any) -> int | None:
    """Epoch seconds; zero means absent."""
    return number(value) or None


def limit(value: Any, *, unit: int = 60) -> int | None:
    """A time limit in seconds, given in minutes."""
    if type(value) is dict and value.get("infinite"):
        return UNLIMITED
    found = number(value)
    return None if found is None or found > _LARGEST // unit else found * unit


def text(value: Any) -> str | None:
    """Text, or None if absent. Lone surrogates are replaced."""
    if type(value) is not str or value in ABSENT or value.isspace():
        return None
    return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")


def job_name(value: Any) -> str | None:
    """A name as sacct prints it, on one line; words such as `None`, which mean nothing elsewhere, are names too."""
    if type(value) is str and value in ABSENT and value not in ("", "(null)"):
        return value
    found = text(value)
    return found and found.replace("\n", " ")


def words(value: Any) -> list[str]:
    """The items of a list, or of comma-separated text."""
    items = value.split(",") if type(value) is str else value if type(value) is list else []
    return [found for item in items if (found := text(item))]


def read_release(value: Any) -> tuple[int, int] | None:
    """The release in a version of Slurm: (26, 5) of `26.05.5`."""
    found = re.match(r"(\d{2})\.(\d{2})\b", value, re.ASCII) if type(value) is str else None
    return (int(found[1]), int(found[2])) if found else None


def state_of(value: Any, *, requeued: bool) -> str | None:
    """A job's base state from a name or a list with flags (`["CANCELLED", "COMPLETING"]`).

    In accounting (`requeued`), a record marked REQUEUED has ended; in the queue it is pending again.
    """
    names = [name.split()[0].rstrip("+").upper() for name in words([value] if type(value) is str else value)]
    if "REQUEUED" in names:
        return "REQUEUED" if requeued else "PENDING"
    if "REVOKED" in names:
        return "REVOKED"
    return next((name for name in names if name not in _FLAGS), names[0] if names else None)


def ended(state: str | None) -> bool:
    return state is not None and STATES.get(state, Outcome.UNKNOWN) is not None


def exit_status(status: int | None) -> tuple[int | None, int | None]:
    """Exit code and signal of what wait(2) returned, as sacct prints them."""
    return (None, None) if status is None else (printed_code(status >> 8 & 0xFF), status & 0x7F)


def printed_code(code: int) -> int:
    """An exit code as sacct prints it: one of 128 or more counts from there, so a shell's 137 (signal 9) is 9."""
    return code - 128 if code >= 128 else code


def tres_total(value: Any) -> dict[str, int]:
    """Trackable resources of a list or of text, memory in bytes, by name."""
    if type(value) is str:
        try:
            return dict(sorted(parse_tres(value).items()))
        except UnitError:
            return {}
    found: dict[str, int] = {}
    for item in value if type(value) is list else ():
        if type(item) is not dict:
            continue
        kind, name, count = text(item.get("type")), text(item.get("name")), number(item.get("count"))
        if kind and count is not None:
            found[f"{kind}/{name}" if name else kind] = count * MEGABYTE if kind == "mem" else count
    return {name: count for name, count in sorted(found.items()) if count <= _LARGEST}


def tres_text(resources: dict[str, int]) -> str | None:
    return format_tres(resources) or None


def gpus(resources: dict[str, int]) -> int | None:
    """GPUs of all types; None without any resources."""
    if not resources:
        return None
    if "gres/gpu" in resources:
        return resources["gres/gpu"]
    return sum(count for name, count in resources.items() if name.startswith("gres/gpu:"))


def gpus_in(gres: str | None) -> int:
    """GPUs of a node's GRES, such as `gpu:a100:4(S:0-1),shard:8`."""
    plain = re.sub(r"\([^)]*\)", "", gres or "")
    items = [item.split(":") for item in plain.split(",")]
    return sum(
        int(item[-1]) if re.fullmatch(r"\d{1,9}", item[-1], re.ASCII) else 1
        for item in items
        if item[0] == "gpu"
    )


def array_text(value: Any, at_once: Any = None) -> str | None:
    """The tasks of a pending array as Slurm writes them. 22.05 gives accounting's as a bitmap, `0x1e` for 1-4."""
    found = text(value)
    if found is None:
        return None
    if found.startswith("0x") and len(found) < 2**20:
        try:
            found = _ranges(int(found[2:], 16))
        except ValueError:
            return None
    most = positive(at_once)
    return f"{found}%{most}" if found and most and "%" not in found else found or None


def tasks_in(array: str | None) -> int | None:
    if array is None or "..." in array:
        return None
    try:
        return array_size(array)
    except UnitError:
        return None


def _ranges(bits: int) -> str:
    """Tasks by their bits: evenly spaced ones as `1-13:3`, others as ranges."""
    digits = bin(bits)[:1:-1]
    tasks = [place for place, bit in enumerate(digits) if bit == "1"]
    if not tasks:
        return ""
    steps = {after - before for before, after in pairwise(tasks)}
    if len(tasks) > 2 and len(steps) == 1 and steps != {1}:
        return f"{tasks[0]}-{tasks[-1]}:{steps.pop()}"
    runs: list[list[int]] = []
    for task in tasks:
        if runs and runs[-1][1] == task - 1:
            runs[-1][1] = task
        else:
            runs.append([task, task])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
