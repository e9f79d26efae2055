"""Sums the usage of a job's steps into the job; slurmdbd's JSON has job-level times of 0."""

from typing import Any

from tocsin.sources.json_values import member, number
from tocsin.sources.step_memory import memory_on_node

__all__ = ["usage_of"]

_MICRO = 1_000_000
_TIMES = {"cpu_seconds": "total", "user_cpu_seconds": "user", "system_cpu_seconds": "system"}


def usage_of(steps: Any) -> dict[str, Any]:
    """CPU time and bytes summed over the steps; memory and energy of the largest step.

    `tres.requested` is what sacct calls TRESUsageIn (memory used, bytes read), `consumed` TRESUsageOut (bytes written).
    """
    known = [step for step in steps if type(step) is dict] if type(steps) is list else []
    if not known:
        return dict.fromkeys(_TIMES, 0)  # as sacct prints
    used: dict[str, Any] = {"steps": len(known)}
    times = [member(step, "time") for step in known]
    for name, part in _TIMES.items():
        clocks = [member(time, part) for time in times]
        micro = sum(
            (number(c.get("seconds")) or 0) * _MICRO + (number(c.get("microseconds")) or 0) for c in clocks
        )
        used[name] = micro // _MICRO
    tres = [member(step, "tres") for step in known]
    read_in, written = [member(t, "requested") for t in tres], [member(t, "consumed") for t in tres]
    peaks = [_memory_on_node(step, used_in) for step, used_in in zip(known, read_in, strict=True)]
    used["max_memory"] = max((peak for peak in peaks if peak), default=None)
    used["read_bytes"] = _sum(_count(t.get("total"), "fs", "disk") for t in read_in)
    used["written_bytes"] = _sum(_count(t.get("total"), "fs", "disk") for t in written)
    energy = [number(member(member(s, "statistics"), "energy").get("consumed")) for s in known]
    # Energy is measured per node, so steps on one node share it; 0 means that no plug-in measures it.
    used["energy"] = float(max((e for e in energy if e), default=0)) or None
    return used


def _memory_on_node(step: dict[str, Any], used_in: Any) -> int | None:
    tasks, nodes = (number(member(step, name).get("count")) for name in ("tasks", "nodes"))
    largest, total = (_count(used_in.get(part), "mem", "") for part in ("max", "total"))
    return memory_on_node(largest, total, tasks, nodes)


def _sum(amounts: Any) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _count(resources: Any, kind: str, name: str) -> int | None:
    for item in resources if type(resources) is list else ():
        if type(item) is dict and item.get("type") == kind and (item.get("name") or "") == name:
            return number(item.get("count"))
    return None
