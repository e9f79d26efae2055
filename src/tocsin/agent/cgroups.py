"""Slurm's jobs on this node by their control groups, version 2 and version 1, and each job's counters."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tocsin.agent.files import flat_keyed, number, read

__all__ = ["JobGroup", "counters", "cpuset", "find_jobs", "processes"]

_JOB = re.compile(r"job_(\d+)")
_V1_CONTROLLERS = ("freezer", "cpuset", "cpuacct", "cpu", "memory", "blkio")
_TICK = 1 / (os.sysconf("SC_CLK_TCK") or 100)


@dataclass(frozen=True, slots=True)
class JobGroup:
    """A job's folders: one for each controller of version 1, or the one of version 2 under `""`."""

    job: str
    folders: Mapping[str, str]

    @property
    def unified(self) -> str | None:
        return self.folders.get("")


def find_jobs(root: str, node: str | None = None) -> dict[str, JobGroup]:
    """The jobs that have control groups under `root`; with `node`, only those of that slurmd."""
    folders: dict[str, dict[str, str]] = {}
    for controller, parent in _parents(root, node):
        for name, folder in _folders(parent):
            if match := _JOB.fullmatch(name):
                folders.setdefault(match[1], {})[controller] = folder
    return {job: JobGroup(job, found) for job, found in sorted(folders.items())}


def cpuset(group: JobGroup) -> frozenset[int] | None:
    """The CPUs that the job is bound to; None if that cannot be read."""
    if group.unified is not None:
        names = ["cpuset.cpus.effective", "cpuset.cpus"]
        folder = group.unified
    elif "cpuset" in group.folders:
        names = ["cpuset.effective_cpus", "cpuset.cpus"]
        folder = group.folders["cpuset"]
    else:
        return None
    for name in names:
        if content := (read(f"{folder}/{name}") or b"").strip():
            return _cpu_list(content)
    return None


def processes(group: JobGroup) -> list[int]:
    """The processes of all steps of the job."""
    if group.unified is not None:
        top = group.unified
    else:
        top = next((group.folders[name] for name in _V1_CONTROLLERS if name in group.folders), "")
    found: set[int] = set()
    waiting = [top] if top else []
    while waiting:
        folder = waiting.pop()
        found.update(int(line) for line in (read(f"{folder}/cgroup.procs") or b"").split() if line.isdigit())
        waiting.extend(path for _, path in _folders(folder))
    return sorted(found)


def counters(group: JobGroup) -> dict[str, float]:
    """The job's usage so far, in seconds and bytes; without what the kernel does not report."""
    values = _unified_counters(group.unified) if group.unified is not None else _v1_counters(group.folders)
    return {name: value for name, value in values.items() if value is not None}


def _parents(root: str, node: str | None) -> Iterator[tuple[str, str]]:
    """Folders that may hold `job_<id>`, with their controller."""
    for base in (root, f"{root}/unified"):
        if read(f"{base}/cgroup.controllers") is None:
            continue
        for name, folder in (*_folders(base), *_folders(f"{base}/system.slice")):
            if name == f"{node}_slurmstepd.scope" if node else name.endswith("slurmstepd.scope"):
                yield "", folder
    for controller in _V1_CONTROLLERS:
        for name, folder in _folders(f"{root}/{controller}"):
            if name == f"slurm_{node}" if node else name == "slurm" or name.startswith("slurm_"):
                yield from ((controller, user) for _, user in _folders(folder))


def _folders(folder: str) -> list[tuple[str, str]]:
    """The folders in a folder: name and path."""
    try:
        with os.scandir(folder) as entries:
            return [(entry.name, entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _cpu_list(content: bytes) -> frozenset[int] | None:
    """`0-3,8` as numbers."""
    cpus: set[int] = set()
    try:
        for part in content.split(b","):
            first, _, last = part.partition(b"-")
            cpus.update(range(int(first), min(int(last or first), 1 << 16) + 1))
    except ValueError:
        return None
    return frozenset(cpus)


def _unified_counters(folder: str) -> dict[str, float | None]:
    cpu = _getter(flat_keyed(read(f"{folder}/cpu.stat")), 1e-6)
    memory = _getter(flat_keyed(read(f"{folder}/memory.stat")), 1)
    read_bytes, written = _io_stat(read(f"{folder}/io.stat"))
    return {
        "cpu_user_seconds_total": cpu(b"user_usec"),
        "cpu_system_seconds_total": cpu(b"system_usec"),
        "cpu_throttled_seconds_total": cpu(b"throttled_usec"),
        "memory_bytes": number(f"{folder}/memory.current"),
        "memory_peak_bytes": number(f"{folder}/memory.peak"),
        "page_faults_total": memory(b"pgfault"),
        "major_page_faults_total": memory(b"pgmajfault"),
        "io_read_bytes_total": read_bytes,
        "io_written_bytes_total": written,
        **{
            f"pressure_{what}_seconds_total": _pressure(read(f"{folder}/{what}.pressure"))
            for what in ("cpu", "memory", "io")
        },
    }


def _v1_counters(folders: Mapping[str, str]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    if folder := folders.get("cpuacct"):
        used = _getter(flat_keyed(read(f"{folder}/cpuacct.stat")), _TICK)
        values["cpu_user_seconds_total"] = used(b"user")
        values["cpu_system_seconds_total"] = used(b"system")
    if folder := folders.get("cpu"):
        throttled = _getter(flat_keyed(read(f"{folder}/cpu.stat")), 1e-9)
        values["cpu_throttled_seconds_total"] = throttled(b"throttled_time")
    if folder := folders.get("memory"):
        memory = _getter(flat_keyed(read(f"{folder}/memory.stat")), 1)
        values["memory_bytes"] = number(f"{folder}/memory.usage_in_bytes")
        values["memory_peak_bytes"] = number(f"{folder}/memory.max_usage_in_bytes")
        values["page_faults_total"] = memory(b"total_pgfault")
        values["major_page_faults_total"] = memory(b"total_pgmajfault")
    if folder := folders.get("blkio"):
        content = read(f"{folder}/blkio.throttle.io_service_bytes_recursive")
        values["io_read_bytes_total"], values["io_written_bytes_total"] = _blkio(content)
    return values


def _getter(values: dict[bytes, int], factor: float) -> Callable[[bytes], float | None]:
    def get(key: bytes) -> float | None:
        value = values.get(key)
        return None if value is None else value * factor

    return get


def _io_stat(content: bytes | None) -> tuple[float | None, float | None]:
    """`8:0 rbytes=1 wbytes=2 …`, a line for each device."""
    if content is None:
        return None, None
    totals = {b"rbytes": 0, b"wbytes": 0}
    for word in content.split():
        key, _, value = word.partition(b"=")
        if key in totals and value.isdigit():
            totals[key] += int(value)
    return totals[b"rbytes"], totals[b"wbytes"]


def _blkio(content: bytes | None) -> tuple[float | None, float | None]:
    """`8:0 Read 1`, a line for each device and direction."""
    if content is None:
        return None, None
    totals = {b"Read": 0, b"Write": 0}
    for line in content.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in totals and words[2].isdigit():
            totals[words[1]] += int(words[2])
    return totals[b"Read"], totals[b"Write"]


def _pressure(content: bytes | None) -> float | None:
    """Seconds in which some task waited (the line `some … total=MICROSECONDS`)."""
    _, found, total = (content or b"").partition(b"\n")[0].partition(b"total=")
    return int(total) * 1e-6 if found and total.isdigit() else None
