"""The threads of jobs: on which CPU each last ran, and its context switches."""

import os
import re
from dataclasses import dataclass

from tocsin.agent.files import read

__all__ = ["Thread", "context_switches", "threads"]

_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE).findall


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread as /proc/PID/task/TID/stat shows it."""

    id: int
    cpu: int
    ticks: int  # user and system time so far
    waiting: bool  # on a CPU's queue, or for I/O


def threads(proc: str, process: int) -> list[Thread]:
    """The threads of a process; none if it has ended."""
    found = []
    for name in _ids(proc, process):
        content = read(f"{proc}/{process}/task/{name}/stat")
        # The command may hold blanks and parentheses; the fields follow its last parenthesis (proc(5)).
        fields = (content or b"").rpartition(b")")[2].split()
        try:
            found.append(
                Thread(int(name), int(fields[36]), int(fields[11]) + int(fields[12]), fields[0] in b"RD")
            )
        except (IndexError, ValueError):
            continue
    return found


def context_switches(proc: str, process: int) -> dict[int, int]:
    """Context switches of each thread of a process so far, voluntary or not."""
    found = {}
    for name in _ids(proc, process):
        found[int(name)] = sum(map(int, _SWITCHES(read(f"{proc}/{process}/task/{name}/status") or b"")))
    return found


def _ids(proc: str, process: int) -> list[str]:
    try:
        return [name for name in os.listdir(f"{proc}/{process}/task") if name.isdigit()]
    except OSError:
        return []
