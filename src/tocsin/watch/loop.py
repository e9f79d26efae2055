"""The loop around rounds: pauses, retries and stopping."""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol, Self

from tocsin.core.errors import ClusterError, SourceError, StoreError
from tocsin.core.ports import Clock
from tocsin.watch.accounting import COST_SHARE
from tocsin.watch.watcher import Round

__all__ = ["LONGEST", "LONGEST_AFTER_SLOW", "Rounds", "Stop", "cost_of", "pause_after", "run"]

LONGEST = 60
"""Longest pause after an error, in seconds."""
LONGEST_AFTER_SLOW = 30
"""Longest pause after a slow answer, in seconds: one hang must not silence the watch."""
_SLOW = 1.0
"""Seconds below which an answer is never called slow."""
_LAST = 5
"""Answers considered: the fastest one shows what a question costs Slurm, unless one is slow."""


class Rounds(Protocol):
    """Work done in rounds: by a Watcher, or by screening."""

    def step(self, now: int) -> Round: ...


class Stop:
    """An event that a signal handler may set, by writing to a pipe that `wait` reads."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def set(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full: already set
            os.write(self._write, b"x")

    def wait(self, seconds: float) -> bool:
        """Whether it was set within this time."""
        return bool(select.select([self._read], [], [], max(0.0, seconds))[0])

    @contextmanager
    def on_signals(self, *numbers: signal.Signals) -> Iterator[None]:
        """Set the event on these signals while the block runs."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.set()

        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._read)
        os.close(self._write)


def run(
    rounds: Rounds,
    clock: Clock,
    stop: Stop,
    *,
    interval: float,
    longest: float = LONGEST_AFTER_SLOW,
    report: Callable[[Round], None],
    notify: Callable[[str], None],
    waiting: Callable[[float, str | None], None] = lambda _pause, _problem: None,
    once: bool = False,
    seconds: Callable[[], float] = time.monotonic,
) -> None:
    """Run rounds until stopped; with `once`, until there is nothing left to catch up with.

    A round begins `interval` seconds after the last one began, but not sooner after its end than 20 times what reading
    the queue costs Slurm, up to `longest` seconds. A problem or a slow cluster is reported once when it begins, and
    once when it is over. `waiting` gets each pause and why the round before it failed.
    """
    reported: set[str] = set()
    failures = 0
    pause = 0.0
    costs: deque[float] = deque(maxlen=_LAST)
    while not stop.wait(pause):
        began = seconds()
        try:
            done = rounds.step(int(clock.now()))
        except (ClusterError, SourceError, StoreError) as error:
            if once:
                raise
            pause = min(interval * 2**failures, max(interval, LONGEST))
            failures = min(failures + 1, 16)
            _report_once({str(error): f"{error} (trying again)"}, reported, notify)
            waiting(pause, str(error))
            continue
        costs.append(done.cost)
        wanted, most = COST_SHARE * cost_of(costs), max(interval, longest)
        problems = {problem: problem for problem in done.problems}
        if wanted > most and done.cost > _SLOW:
            problems["slow"] = (
                f"the cluster is slow: reading its queue took {done.cost:.0f} s; next in {most:.0f} s"
            )
        if failures or (reported and not problems):
            notify("all sources answer again")
            reported.clear()
        failures = 0
        _report_once(problems, reported, notify)
        report(done)
        pause = 0.0 if done.behind else pause_after(interval, min(wanted, most), seconds() - began)
        waiting(pause, None)
        if once and not done.behind:
            return


def cost_of(answers: Sequence[float]) -> float:
    """What a question costs Slurm, estimated from the seconds that its last answers took.

    >>> cost_of([0.01, 0.4, 0.02]), cost_of([0.3, 0.4]), cost_of([0.01, 7])
    (0.01, 0.3, 7)

    A busy host or network delays some answers; a busy slurmctld delays them all.
    """
    return answers[-1] if answers[-1] > _SLOW else min(answers)


def pause_after(interval: float, owed: float, took: float) -> float:
    """Seconds until the next round, after one that took `took`; for `owed` seconds, Slurm is left alone.

    >>> pause_after(1, 0.2, took=0.3), pause_after(1, 4, took=0.3), pause_after(1, 0.2, took=1.5)
    (0.7, 4, 0.75)

    A third of the time is left to other processes on the host and other threads of this one.
    """
    return max(interval - took, owed, min(interval, took / 2))


def _report_once(problems: dict[str, str], reported: set[str], notify: Callable[[str], None]) -> None:
    for problem, text in problems.items():
        if problem not in reported:
            reported.add(problem)
            notify(text)
