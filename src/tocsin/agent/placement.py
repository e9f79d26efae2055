"""Which job runs on which CPU: by the job's cpuset if it is bound, otherwise by where its threads last ran."""

from collections.abc import Mapping

from tocsin.agent.cgroups import JobGroup, cpuset, processes
from tocsin.agent.threads import context_switches, threads

__all__ = ["Placement"]


class Placement:
    """Tracks the jobs' threads from one reading to the next."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._ticks: dict[tuple[str, int], int] = {}
        self._switches: dict[tuple[str, int], int] = {}
        self._switched: dict[str, int] = {}

    def cpus(self, groups: Mapping[str, JobGroup], online: frozenset[int]) -> dict[int, str]:
        """The job of each CPU that has one. A bound job has all CPUs of its set, whether it uses them or not."""
        owner: dict[int, str] = {}
        most: dict[int, int] = {}
        ticks: dict[tuple[str, int], int] = {}
        for job, group in groups.items():
            bound = cpuset(group)
            if bound is not None and not bound >= online:
                owner.update(dict.fromkeys(bound & online, job))
                most.update(dict.fromkeys(bound & online, 1 << 62))
                continue
            for process in processes(group):
                for thread in threads(self._proc, process):
                    key = (job, thread.id)
                    ticks[key] = thread.ticks
                    used = thread.ticks - self._ticks.get(key, thread.ticks)
                    # A sleeping thread holds no CPU, wherever it ran last.
                    if (used > 0 or thread.waiting) and used >= most.get(thread.cpu, 0):
                        owner[thread.cpu] = job
                        most[thread.cpu] = used
        self._ticks = ticks
        return owner

    def switches(self, groups: Mapping[str, JobGroup]) -> dict[str, int]:
        """Context switches of each job since it was first seen; those of ended threads remain counted."""
        now: dict[tuple[str, int], int] = {}
        total = dict.fromkeys(groups, 0)
        for job, group in groups.items():
            total[job] = self._switched.get(job, 0)
            for process in processes(group):
                for thread, count in context_switches(self._proc, process).items():
                    now[job, thread] = count
                    total[job] += max(0, count - self._switches.get((job, thread), 0))
        self._switches = now
        self._switched = total
        return total
