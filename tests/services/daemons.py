"""Daemons run in the foreground of their own sessions, remembered by process id and ended by it, never by name."""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple


class ServiceError(Exception):
    """A test service did not come up, did not answer, or refused a request."""


@dataclass(frozen=True)
class Process:
    """A process told apart from a later one with the same id by the kernel's start time (clock ticks since boot)."""

    name: str
    pid: int
    born: int


class _Stat(NamedTuple):
    state: str
    parent: int
    born: int


def _stat(pid: int) -> _Stat | None:
    try:
        # The second field is the command in parentheses and may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return _Stat(state=fields[0], parent=int(fields[1]), born=int(fields[19]))


def alive(process: Process) -> bool:
    """Whether this very process still runs (a zombie does not)."""
    stat = _stat(process.pid)
    return stat is not None and stat.state not in "ZX" and stat.born == process.born


def this_process() -> Process:
    """The process that asks."""
    stat = _stat(os.getpid())
    assert stat is not None, "the running process is in /proc"
    return Process("owner", os.getpid(), stat.born)


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody uses now, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def await_true(
    what: str,
    ready: Callable[[], bool],
    timeout: float,
    why_not: Callable[[], str] = str,
    every: float = 0.02,
) -> None:
    """Poll until ready; past the deadline, an error that says what was awaited and the reason at hand."""
    deadline = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > deadline:
            raise ServiceError(f"{what} after {timeout:g} s. {why_not()}".rstrip())
        time.sleep(every)


def connects(address: Path | tuple[str, int]) -> bool:
    """Whether something listens at a unix socket or a TCP address."""
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    with socket.socket(family) as s:
        try:
            s.connect(str(address) if isinstance(address, Path) else address)
        except OSError:
            return False
    return True


class Daemons:
    """The daemons of one service: started, awaited, ended. Each writes to `<name>.log` in the log folder."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs
        self.running: dict[str, Process] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, command: Sequence[str | Path], env: Mapping[str, str], user: str | None = None
    ) -> None:
        """Start a daemon that stays in the foreground; its own session keeps a Ctrl-C at the tests from reaching it."""
        with (self.logs / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(env),
                cwd="/",
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        stat = _stat(child.pid)
        assert stat is not None, "a child that was not waited for is in /proc"
        self._children[name] = child
        self.running[name] = Process(name, child.pid, stat.born)

    def await_ready(self, name: str, ready: Callable[[], bool], timeout: float) -> None:
        """Wait until a daemon answers; at once an error with the end of its log when it died instead."""

        def ready_or_dead() -> bool:
            if not alive(self.running[name]):
                raise ServiceError(f"{name} ended while it was starting. {self.last_words(name)}")
            return ready()

        await_true(f"{name} does not answer", ready_or_dead, timeout, lambda: self.last_words(name))

    def last_words(self, name: str, lines: int = 15) -> str:
        """The end of a daemon's log."""
        log = self.logs / f"{name}.log"
        text = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
        return f"The end of {log}:\n" + "\n".join(text)

    def stop(self, names: Sequence[str], grace: float = 5.0) -> None:
        """Ask these daemons to end, all at once; kill those that still run when the grace is over."""
        processes = [self.running.pop(name) for name in names if name in self.running]
        for process in processes:
            send(process, signal.SIGTERM)
        with contextlib.suppress(ServiceError):
            await_true("daemons still run", lambda: not any(map(alive, processes)), grace)
        end_now(processes)
        for process in processes:
            if child := self._children.pop(process.name, None):
                child.wait()

    def kill(self, name: str) -> None:
        """End a daemon without a warning, as a crash does."""
        end_now([self.running.pop(name)])
        self._children.pop(name).wait()

    def forget(self) -> None:
        """Leave the daemons to themselves: a later process ends them from their record."""
        for child in self._children.values():
            child.returncode = 0  # else Python warns at exit of a child that still runs
        self._children.clear()

    def record(self, file: Path, owner: Process | None) -> None:
        """Write down what runs and for whom, so that another process can end it."""
        processes = [asdict(p) for p in self.running.values()]
        file.write_text(
            json.dumps({"owner": asdict(owner) if owner else None, "processes": processes}, indent=1)
        )

    @classmethod
    def recorded(cls, file: Path, logs: Path) -> "tuple[Daemons, Process | None]":
        """The daemons of a record, and the process they run for, if that is alive."""
        known, daemons = json.loads(file.read_text()), cls(logs)
        daemons.running = {p["name"]: Process(**p) for p in known["processes"]}
        owner = Process(**known["owner"]) if known["owner"] else None
        return daemons, owner if owner and alive(owner) else None


def send(process: Process, number: signal.Signals) -> None:
    """Signal this very process, never another one that got its id."""
    if alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


def end_now(processes: Iterable[Process]) -> None:
    """Kill these processes and wait until none of them is left to write a file."""
    processes = list(processes)
    for process in processes:
        send(process, signal.SIGKILL)
    await_true("killed processes are still there", lambda: not any(map(alive, processes)), 10)


def listener(path: Path) -> Process | None:
    """The process that listens at a unix socket; None when nobody does."""
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(str(path))
        except OSError:
            return None
        pid, _, _ = struct.unpack(
            "3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        )
    stat = _stat(pid)
    return Process(path.name, pid, stat.born) if stat else None


def with_descendants(processes: Iterable[Process]) -> list[Process]:
    """These processes and all that they started."""
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if stat := _stat(int(folder.name)):
            children.setdefault(stat.parent, []).append(Process("child", int(folder.name), stat.born))
    found = list(processes)
    for process in found:  # grows as it is walked
        found += children.get(process.pid, [])
    return found
