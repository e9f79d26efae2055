"""A compute node made of files: /proc and control groups, version 1 or 2, as the kernel and Slurm lay them out."""

from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["FakeNode"]


class FakeNode:
    """Write what the kernel would show; call `spend` for time that passes on CPUs."""

    def __init__(self, folder: Path, cpus: int, *, version: int = 2, scope: str = "slurmstepd.scope") -> None:
        self.proc = folder / "proc"
        self.cgroup = folder / "cgroup"
        self.version = version
        self.ticks = {cpu: [0] * 10 for cpu in range(cpus)}
        self._scope = scope
        self.proc.mkdir(parents=True)
        if version == 2:
            _write(self.cgroup / "cgroup.controllers", "cpuset cpu io memory pids\n")
        self.spend({})

    def spend(self, modes: Mapping[int, Mapping[str, int]]) -> None:
        """Add ticks by CPU and mode; a CPU that is not named idles for 100."""
        places = (
            "user",
            "nice",
            "system",
            "idle",
            "iowait",
            "irq",
            "softirq",
            "steal",
            "guest",
            "guest_nice",
        )
        for cpu, ticks in self.ticks.items():
            for mode, spent in modes.get(cpu, {"idle": 100}).items():
                ticks[places.index(mode)] += spent
        self.show()

    def show(self) -> None:
        rows = [f"cpu{cpu} {' '.join(map(str, ticks))}" for cpu, ticks in self.ticks.items()]
        _write(
            self.proc / "stat", "\n".join(["cpu  0 0 0 0 0 0 0 0 0 0", *rows, "intr 12 0 0", "ctxt 7", ""])
        )

    def add_job(self, job: int, cpus: str, processes: Iterable[int] = (), **files: str) -> None:
        """A job with one step; `files` are further files of its group, with `__` for a dot in the name."""
        names = {"cgroup__procs": "", **files}
        if self.version == 2:
            top = self.cgroup / "system.slice" / self._scope / f"job_{job}"
            _write(top / "cpuset.cpus.effective", f"{cpus}\n")
            step = top / "step_0" / "user" / "task_0"
            _write(step / "cgroup.procs", "".join(f"{process}\n" for process in processes))
            for name, text in names.items():
                _write(top / name.replace("__", "."), text)
            return
        for controller in ("freezer", "cpuset", "cpuacct", "cpu", "memory", "blkio"):
            top = self.cgroup / controller / "slurm" / "uid_1000" / f"job_{job}"
            _write(top / "step_0" / "cgroup.procs", "".join(f"{process}\n" for process in processes))
            for name, text in names.items():
                if name.startswith((controller, "cgroup")):
                    _write(top / name.replace("__", "."), text)
        _write(self.cgroup / "cpuset" / "slurm" / "uid_1000" / f"job_{job}" / "cpuset.cpus", f"{cpus}\n")

    def set_thread(
        self, process: int, thread: int, cpu: int, *, state: str = "S", ticks: int = 0, switches: int = 0
    ) -> None:
        folder = self.proc / str(process) / "task" / str(thread)
        fields = [state, *["0"] * 10, str(ticks), *["0"] * 24, str(cpu), *["0"] * 13]
        _write(folder / "stat", f"{thread} (a (strange) name) {' '.join(fields)}\n")
        _write(
            folder / "status",
            f"Name:\tx\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n",
        )


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
