"""Run Slurm's commands safely: no shell, a clean environment, a time limit, errors as sentences."""

import atexit
import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import Any

from tocsin.core.errors import ClusterError
from tocsin.sources.waiting import of_command, on_run_queue, wait_noted

__all__ = ["MAX_BYTES", "NoAnswer", "run", "slurm_env", "stream"]


class NoAnswer(ClusterError):
    """Slurm's daemon did not answer: the same question may be answered later."""


MAX_BYTES = 2**30
_CHUNK = 2**18
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_JWT")
# TZ=UTC makes the times we pass unambiguous; SLURM_TIME_FORMAT makes the times we read epoch seconds.
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
_NO_ANSWER = re.compile(
    r"unable to contact|connection refused|no response|communication|timed out", re.IGNORECASE
)
_NO_SLURM_CONF = re.compile("resolve_ctls_from_dns_srv|configuration source")


def slurm_env(slurm_conf: str) -> dict[str, str]:
    """The environment that makes Slurm's commands read this slurm.conf; empty for the default of this process.

    It is passed to each command, because one process may query several clusters at once.
    """
    return {"SLURM_CONF": slurm_conf} if slurm_conf else {}


def run(argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> bytes:
    """The whole output of a command; ClusterError if it cannot run, fails, or exceeds the time or size limit."""
    output = bytearray()
    deadline = monotonic() + timeout
    for chunk in stream(argv, timeout=timeout, env=env):
        output += chunk
        if monotonic() > deadline:
            raise _timed_out(argv[0], timeout)
        if len(output) > MAX_BYTES:
            raise ClusterError(f"{argv[0]} printed more than {MAX_BYTES >> 20} MiB; ask for a shorter time")
    return bytes(output)


def stream(argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """The output of a command in chunks. It is killed after `timeout` seconds of silence or when the reader stops."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SET | dict(env or {})
    with tempfile.TemporaryFile() as errors, _DelayedSignals() as signals:
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except FileNotFoundError:
            raise ClusterError(
                f"{argv[0]} is not installed here; install Slurm's client commands (Debian: slurm-client)"
            ) from None
        except OSError as error:
            raise ClusterError(f"{argv[0]} cannot be run: {error.strerror}") from None
        command = _Command(process)
        _RUNNING.add(command)
        try:
            signals.release()
            yield from command.output(timeout)
            command.await_exit(timeout)
            if code := command.reap():
                errors.seek(0)
                message = errors.read(4096).decode("utf-8", "replace").strip().splitlines()
                raise _failed(argv[0], code, message[0] if message else "no reason given")
        finally:
            command.end()
            _RUNNING.discard(command)


class _DelayedSignals:
    """Delays SIGINT and SIGTERM until a command just started can be cleaned up."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._received: list[int] = []

    def __enter__(self) -> "_DelayedSignals":
        if threading.current_thread() is threading.main_thread():  # handlers run only there
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = signal.signal(
                        number, lambda received, _: self._received.append(received)
                    )
        return self

    def release(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
        while self._received:
            signal.raise_signal(self._received.pop())

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(slots=True, eq=False)
class _Command:
    """A running command, and how long it kept us waiting."""

    process: subprocess.Popen[bytes]
    silence: float = 0.0
    queued_before: float = field(default_factory=lambda: on_run_queue("thread-self"))

    @property
    def name(self) -> str:
        return str(self.process.args[0])  # type: ignore[index]  # we gave it a list

    def output(self, timeout: float) -> Iterator[bytes]:
        pipe = self.process.stdout
        if pipe is None:  # cannot happen: stdout=PIPE
            return
        with selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while True:
                began = monotonic()
                spoke = ready.select(timeout)
                self.silence += monotonic() - began
                if not spoke:
                    raise _timed_out(self.name, timeout)
                chunk = os.read(pipe.fileno(), _CHUNK)
                if not chunk:
                    return
                yield chunk

    def await_exit(self, timeout: float) -> None:
        """It has closed its output, and normally ends at once."""
        began, pause = monotonic(), 0.0005
        while not self._has_ended():
            if monotonic() - began > timeout:
                raise _timed_out(self.name, timeout)
            sleep(pause)
            pause = min(2 * pause, 0.05)
        self.silence += monotonic() - began

    def _has_ended(self, options: int = os.WNOHANG) -> bool:
        """It stays in /proc until it is reaped."""
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | options) is not None
        except ChildProcessError:  # our parent process ignores the end of children
            return True

    def reap(self) -> int:
        """Wait for its end, and record how long it waited for Slurm; returns its exit code."""
        process = self.process
        if process.returncode is None:
            self._has_ended(0)
            queued = on_run_queue(str(process.pid)) + on_run_queue("thread-self") - self.queued_before
            status, cpu = 0, 0.0
            with suppress(ChildProcessError):
                _, status, usage = os.wait4(process.pid, 0)
                cpu = usage.ru_utime + usage.ru_stime
            process.returncode = os.waitstatus_to_exitcode(status)
            wait_noted(of_command(self.silence, cpu, queued))
        return int(process.returncode)

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the command and everything it started, if it still runs."""
        if self.process.returncode is None:
            self.kill()
            self.reap()
        if self.process.stdout is not None:
            self.process.stdout.close()


_RUNNING: set[_Command] = set()


@atexit.register
def _kill_all() -> None:
    """A command that a thread waits for must not outlive this process."""
    for command in list(_RUNNING):
        command.kill()


def _failed(name: str, code: int, reason: str) -> ClusterError:
    database = os.path.basename(name) in ("sacct", "sacctmgr")  # noqa: PTH119  # text in, text out
    daemon, ask = ("slurmdbd", "sacctmgr ping") if database else ("slurmctld", "scontrol ping")
    failed = f"{name} failed (exit {code}): {reason}"
    if _NO_ANSWER.search(reason):
        return NoAnswer(f"{failed}; `{ask}` shows whether {daemon} answers")
    if _NO_SLURM_CONF.search(reason):
        return ClusterError(f"{failed}; this host needs the cluster's slurm.conf and munge key")
    return ClusterError(failed)


def _timed_out(name: str, timeout: float) -> ClusterError:
    return NoAnswer(f"{name} did not answer within {timeout:g} s; is slurmdbd or slurmctld busy or down?")
