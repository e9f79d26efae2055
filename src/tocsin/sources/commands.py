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

__all__ = ["MAX_BYTES", "run", "stream"]

MAX_BYTES = 2**30
_CHUNK = 2**18
_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_JWT")
# With TZ=UTC the times that we pass are unambiguous; those that we read are epoch seconds by SLURM_TIME_FORMAT.
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}


def run(argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> bytes:
    """All that a command prints; a ClusterError if it cannot be run, fails, takes too long or prints too much."""
    output = bytearray()
    deadline = monotonic() + timeout
    for chunk in stream(argv, timeout=timeout, env=env):
        output += chunk
        if monotonic() > deadline:
            raise _late(argv[0], timeout)
        if len(output) > MAX_BYTES:
            raise ClusterError(f"{argv[0]} printed more than {MAX_BYTES >> 20} MiB; ask for a shorter time")
    return bytes(output)


def stream(argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None) -> Iterator[bytes]:
    """What a command prints, as it comes. It is killed when it is silent for so long and when the reader stops."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _SET | dict(env or {})
    with tempfile.TemporaryFile() as errors, _Held() as held:
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
            held.release()
            yield from _output(process, argv[0], timeout)
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                raise _late(argv[0], timeout) from None
            if code:
                errors.seek(0)
                said = errors.read(4096).decode("utf-8", "replace").strip().splitlines()
                raise ClusterError(
                    f"{argv[0]} failed (exit {code}): {said[0] if said else 'it gave no reason'}"
                )
        finally:
            _end(process)


class _Held:
    """Signals that wait until a command that was just started can be ended by whoever they interrupt."""

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._came: list[int] = []

    def __enter__(self) -> "_Held":
        if threading.current_thread() is threading.main_thread():  # only there do handlers run
            for number in (signal.SIGINT, signal.SIGTERM):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = signal.signal(number, lambda came, _: self._came.append(came))
        return self

    def release(self) -> None:
        while self._before:
            signal.signal(*self._before.popitem())
        while self._came:
            signal.raise_signal(self._came.pop())

    def __exit__(self, *_: object) -> None:
        self.release()


def _output(process: subprocess.Popen[bytes], name: str, timeout: float) -> Iterator[bytes]:
    pipe = process.stdout
    if pipe is None:  # cannot be: it was asked for
        return
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while True:
            if not ready.select(timeout):
                raise _late(name, timeout)
            chunk = os.read(pipe.fileno(), _CHUNK)
            if not chunk:
                return
            yield chunk


def _late(name: str, timeout: float) -> ClusterError:
    return ClusterError(f"{name} did not answer within {timeout:g} s; is slurmdbd or slurmctld busy or down?")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The command and what it started are gone after this."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
