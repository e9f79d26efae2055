"""Samples of the node, once per interval: the rates and the job of each CPU, and the counters of each job."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tocsin.agent.cgroups import counters, find_jobs
from tocsin.agent.cpus import CpuRates, Rates, ticks
from tocsin.agent.files import read
from tocsin.agent.placement import Placement

__all__ = ["Sample", "Sampler"]

_PLACEMENT_EVERY = 5  # samples: reading 256 threads each second would cost more than everything else
_SWITCHES_EVERY = (
    15  # samples; counts are spread over the next ones, so that they look like a steady, continuous rate
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The node in one interval that ended at `at` (UTC epoch seconds)."""

    at: float
    rates: Mapping[int, Rates]
    jobs: Mapping[int, str]  # of each CPU that has one
    counters: Mapping[str, Mapping[str, float]]  # of each job


class _Switches:
    """Context switches of jobs, counted at intervals, and shown as counters that grow with every sample."""

    def __init__(self) -> None:
        self.shown: dict[str, float] = {}
        self._pace: dict[str, float] = {}

    def count(self, found: Mapping[str, int]) -> None:
        """New counts are shown after the next samples; those of a new or restarted job at once."""
        before = self.shown
        self.shown = {job: min(before.get(job, number), float(number)) for job, number in found.items()}
        self._pace = {job: (number - self.shown[job]) / _SWITCHES_EVERY for job, number in found.items()}

    def advance(self) -> None:
        for job, pace in self._pace.items():
            self.shown[job] = round(self.shown[job] + pace, 3)


class Sampler:
    """Takes a sample in each interval and keeps those of the last minutes."""

    def __init__(
        self,
        *,
        proc: str = "/proc",
        cgroup: str = "/sys/fs/cgroup",
        node: str | None = None,
        interval: float = 1.0,
        keep_seconds: float = 600,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.interval = interval
        self.clock_jumps = 0
        self._proc, self._cgroup, self._node = proc, cgroup, node
        self._clock = clock
        self._rates = CpuRates()
        self._placement = Placement(proc)
        self._owner: dict[int, str] = {}
        self._switches = _Switches()
        self._taken = 0
        self._kept: deque[Sample] = deque(maxlen=max(1, round(keep_seconds / interval)))

    @property
    def gaps(self) -> int:
        """Readings of single CPUs that gave no rates: the CPU vanished, came back or was reset."""
        return self._rates.gaps

    @property
    def newest(self) -> Sample | None:
        return self._kept[-1] if self._kept else None

    def since(self, at: float) -> list[Sample]:
        """The kept samples later than `at`, oldest first."""
        return [sample for sample in tuple(self._kept) if sample.at > at]

    def sample(self) -> Sample | None:
        """Take a sample; None for the first reading, which has nothing to compare with."""
        now = round(self._clock(), 3)  # as /window prints it, so that `since` repeats nothing
        if self._kept and not 0 < now - self._kept[-1].at < 10 * self.interval:
            self.clock_jumps += 1
            if now <= self._kept[-1].at:  # set back: samples from the future would hide later ones
                self._kept.clear()
        spent = ticks(read(f"{self._proc}/stat") or b"")
        rates = self._rates.update(spent)
        groups = find_jobs(self._cgroup, self._node)
        changed = groups.keys() != self._switches.shown.keys()
        if changed or self._taken % _PLACEMENT_EVERY == 0:
            self._owner = self._placement.cpus(groups, frozenset(spent))
        if changed or self._taken % _SWITCHES_EVERY == 0:
            self._switches.count(self._placement.switches(groups))
        self._switches.advance()
        self._taken += 1
        if not rates:
            return None
        taken = Sample(
            now,
            rates,
            {cpu: job for cpu, job in self._owner.items() if cpu in rates},
            {
                job: counters(group) | {"context_switches_total": self._switches.shown.get(job, 0.0)}
                for job, group in groups.items()
            },
        )
        self._kept.append(taken)
        return taken

    def run(self, stop: threading.Event) -> None:
        """Take samples until stopped, at whole intervals of the clock, so that each second has its own sample.

        Missed intervals are not made up for.
        """
        while not stop.wait(self.until_next()):
            self.sample()

    def until_next(self) -> float:
        """Seconds until the next whole interval of the clock."""
        left = self.interval - self._clock() % self.interval
        # A wait may end a little early, which must not give two samples in one interval.
        return left if left > self.interval / 10 else left + self.interval
