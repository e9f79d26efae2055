"""Daemons run in the foreground of their own sessions, remembered by process id and ended by it, never by name."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

POLL = 0.02


class ServiceError(Exception):
    """A test service did not come up, did not answer, or refused a request."""


@dataclass(frozen=True)
class Process:
    """A process told apart from a later one with the same id by the kernel's start time (clock ticks since boot)."""

    name: str
    pid: int
    born: int


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time of a process; None when there is none."""
    try:
        # The second field is the command in parentheses and may itself hold spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return fields[0], int(fields[19])


def alive(process: Process) -> bool:
    """Whether this very process still runs (a zombie does not)."""
    stat = _stat(process.pid)
    return stat is not None and stat[0] not in "ZX" and stat[1] == process.born


def this_process() -> Process:
    """The process that asks."""
    stat = _stat(os.getpid())
    assert stat is not None, "the running process is in /proc"
    return Process("owner", os.getpid(), stat[1])


def free_ports(count: int) -> list[int]:
    """Loopback ports that nobody uses now, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]


def await_true(what: str, ready: Callable[[], bool], timeout: float, why_not: Callable[[], str] = str) -> None:
    """Poll until ready; past the deadline, an error that says what was awaited and the reason at hand."""
    deadline = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > deadline:
            raise ServiceError(f"{what} after {timeout:g} s. {why_not()}".rstrip())
        time.sleep(POLL)


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
        self.running[name] = Process(name, child.pid, stat[1])

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
        for process in processes:
            send(process, signal.SIGKILL)
            child = self._children.pop(process.name, None)
            if child is not None:
                child.wait()

    def forget(self) -> None:
        """Leave the daemons to themselves: a later process ends them from their record."""
        for child in self._children.values():
            child.returncode = 0  # else Python warns at exit of a child that still runs
        self._children.clear()

    def record(self, file: Path, owner: Process | None) -> None:
        """Write down what runs and for whom, so that another process can end it."""
        processes = [asdict(p) for p in self.running.values()]
        file.write_text(json.dumps({"owner": asdict(owner) if owner else None, "processes": processes}, indent=1))

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


def with_environment(assignment: str) -> list[Process]:
    """Processes that were started with this `NAME=value` in their environment."""
    found, wanted = [], assignment.encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (folder / "environ").read_bytes().split(b"\0")
            stat = _stat(int(folder.name))
            if wanted in environment and stat is not None:
                found.append(Process((folder / "comm").read_text().strip(), int(folder.name), stat[1]))
    return found
