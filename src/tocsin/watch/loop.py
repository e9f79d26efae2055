"""The loop around rounds: pauses, retries and stopping."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Protocol, Self

from tocsin.core.errors import ClusterError, SourceError, StoreError
from tocsin.core.ports import Clock
from tocsin.watch.watcher import COST_SHARE, Round

__all__ = ["LONGEST", "Rounds", "Stop", "run"]

LONGEST = 300
"""Longest pause between two tries, in seconds."""


class Rounds(Protocol):
    """Work done in rounds: a Watcher's, or that of screening."""

    def step(self, now: int) -> Round: ...


class Stop:
    """An event that a signal handler may set: it writes to a pipe, and `wait` reads from it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def set(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full: it is set already
            os.write(self._write, b"x")

    def wait(self, seconds: float) -> bool:
        """Whether it was set before the time was over."""
        return bool(select.select([self._read], [], [], max(0.0, seconds))[0])

    @contextmanager
    def on_signals(self, *numbers: signal.Signals) -> Iterator[None]:
        """Set by these signals while the block runs."""

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
    report: Callable[[Round], None],
    notify: Callable[[str], None],
    once: bool = False,
) -> None:
    """Run rounds until stopped, between two of them; with `once`, until nothing is left to catch up with.

    The pause is at least `interval`, and at least 20 times the time that reading the queue took. A problem is reported
    once when it begins, and once when it is over.
    """
    reported: set[str] = set()
    failures = 0
    pause = 0.0
    while not stop.wait(pause):
        try:
            done = rounds.step(int(clock.now()))
        except (ClusterError, SourceError, StoreError) as error:
            if once:
                raise
            pause = min(interval * 2**failures, LONGEST)
            failures = min(failures + 1, 16)
            _report_once(f"{error} (trying again)", reported, notify)
            continue
        if failures or (reported and not done.troubles):
            notify("all answer again")
            reported.clear()
        failures = 0
        for trouble in done.troubles:
            _report_once(trouble, reported, notify)
        report(done)
        if once and not done.behind:
            return
        pause = 0.0 if done.behind else max(interval, COST_SHARE * done.cost)


def _report_once(problem: str, reported: set[str], notify: Callable[[str], None]) -> None:
    if problem not in reported:
        reported.add(problem)
        notify(problem)
