"""What each CPU spends its time on: rates of user, system, iowait and other that sum to one."""

from typing import NamedTuple

__all__ = ["CpuRates", "Rates", "Ticks", "ticks"]


class Ticks(NamedTuple):
    """Clock ticks of one CPU since the start of the machine."""

    user: int
    system: int
    iowait: int
    other: int


class Rates(NamedTuple):
    """Shares of the time between two readings; they sum to one."""

    user: float
    system: float
    iowait: float
    other: float


def ticks(stat: bytes) -> dict[int, Ticks]:
    """The CPUs of /proc/stat. Niced work counts as user; guests are already part of user (proc(5))."""
    found: dict[int, Ticks] = {}
    for line in stat.splitlines():
        if not line.startswith(b"cpu"):
            if found:
                break  # the CPUs come first; the rest is long and not needed
            continue
        name, *values = line.split()
        if not name[3:].isdigit() or len(values) < 5:
            continue
        try:
            user, nice, system, idle, iowait, *rest = map(int, values[:8])
        except ValueError:
            continue
        found[int(name[3:])] = Ticks(user + nice, system, iowait, idle + sum(rest))
    return found


class CpuRates:
    """Rates between consecutive readings; a CPU that vanished, came back or was reset gives none and is counted."""

    def __init__(self) -> None:
        self.gaps = 0
        self._before: dict[int, Ticks] = {}

    def update(self, now: dict[int, Ticks]) -> dict[int, Rates]:
        rates: dict[int, Rates] = {}
        for cpu, after in now.items():
            before = self._before.get(cpu)
            if before is None:
                continue
            user = after.user - before.user
            system = after.system - before.system
            # The kernel's iowait and idle may decrease a little (proc(5)); user and system only at a reset.
            iowait = max(0, after.iowait - before.iowait)
            other = max(0, after.other - before.other)
            total = user + system + iowait + other
            if user < 0 or system < 0 or total <= 0:
                self.gaps += 1
                continue
            rates[cpu] = Rates(user / total, system / total, iowait / total, other / total)
        self.gaps += len(self._before.keys() - now.keys())
        self._before = now
        return rates
