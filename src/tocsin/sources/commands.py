"""Run Slurm's commands safely: no shell, a clean environment, a time limit, errors as sentences."""

import os
import selectors
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from tocsin.core.errors import ClusterError

__all__ = ["MAX_BYTES", "run", "slurm_env", "stream"]

MAX_BYTES = 2**30
_CHUNK = 2**18
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_JWT")
# TZ=UTC makes the times we pass unambiguous; SLURM_TIME_FORMAT makes the times we read epoch seconds.
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}


def slurm_env(slurm_conf: str) -> dict[str, str]:
    """What makes Slurm's commands read this slurm.conf; nothing for an empty path, the default of this process.

    It is given with each command: one process may ask several clusters at once.
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
        try:
            signals.release()
            yield from _output(process, argv[0], timeout)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise _timed_out(argv[0], timeout) from None
            if code:
                errors.seek(0)
                message = errors.read(4096).decode("utf-8", "replace").strip().splitlines()
                raise ClusterError(
                    f"{argv[0]} failed (exit {code}): {message[0] if message else 'no reason given'}"
                )
        finally:
            _end(process)


class _DelayedSignals:
    """Delays SIGINT and SIGTERM until a command just started can be cleaned up."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._received: list[int] = []

    def __enter__(self) -> "_DelayedSignals":
        if threading.current_thread() is threading.main_thread():  # only there do handlers run
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


def _output(process: subprocess.Popen[bytes], name: str, timeout: float) -> Iterator[bytes]:
    pipe = process.stdout
    if pipe is None:  # cannot happen: stdout=PIPE
        return
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while True:
            if not ready.select(timeout):
                raise _timed_out(name, timeout)
            chunk = os.read(pipe.fileno(), _CHUNK)
            if not chunk:
                return
            yield chunk


def _timed_out(name: str, timeout: float) -> ClusterError:
    return ClusterError(f"{name} did not answer within {timeout:g} s; is slurmdbd or slurmctld busy or down?")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command and everything it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
