"""How long this thread has waited for Slurm: a clock that stops while this host is busy with its own work.

A pause after each question protects slurmctld. On a busy host, a command of Slurm takes many times longer than
slurmctld needs for its answer; pausing for that, too, would only slow the watch when it has the most to do.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["Questions", "of_command", "of_slurmrestd", "on_run_queue", "wait_noted", "waited"]


_LONGEST_WRITING = 5.0


class _Total(threading.local):
    seconds = 0.0


_TOTAL = _Total()


def waited() -> float:
    """Seconds that this thread has waited for answers of Slurm so far; only differences are meaningful."""
    return _TOTAL.seconds


def wait_noted(seconds: float) -> None:
    """Add a wait of this thread."""
    _TOTAL.seconds += max(0.0, seconds)


class Questions:
    """The question that is open now, and how long the last answer took."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._asked: float | None = None
        self._usual = 0.0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Around one question. A failure leaves the usual time as it was."""
        self._asked = self._now()
        try:
            yield
            self._usual = self._now() - self._asked
        finally:
            self._asked = None

    def overdue(self) -> float:
        """Seconds for which an open question has waited longer than the last one; read by any thread."""
        asked = self._asked
        return 0.0 if asked is None else max(0.0, self._now() - asked - self._usual)


def of_command(silence: float, cpu: float, queued: float) -> float:
    """The part of a command's `silence` in which it waited for Slurm.

    `cpu`: seconds of CPU that the command used; `queued`: seconds that it, or its reader, was ready to run while others
    ran.
    """
    return max(0.0, silence - cpu - queued)


def of_slurmrestd(silence: float) -> float:
    """The part of slurmrestd's `silence` that counts as a wait for Slurm.

    For an answer about 250 jobs, slurmrestd 22.05 computed for 45 ms and slurmctld for 1.3. A fifth of the time counts, so
    that slurmrestd, too, is left alone most of the time; all of it if it takes longer than any answer should.
    """
    return silence / 5 if silence <= _LONGEST_WRITING else silence


def on_run_queue(task: str) -> float:
    """Seconds that a task of /proc, such as `17` or `thread-self`, was runnable but did not run; 0 if unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc", task, "schedstat").read_text("ascii").split()[1]) / 1e9
    return 0.0
