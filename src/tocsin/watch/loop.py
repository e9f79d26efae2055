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

__all__ = ["LONGEST", "LONGEST_AFTER_SLOW", "Rounds", "Stop", "run"]

LONGEST = 60
"""Longest pause after an error, in seconds."""
LONGEST_AFTER_SLOW = 30
"""Longest pause after a slow answer, in seconds: one hang must not silence the watch."""
_SLOW = 1.0
"""Seconds below which an answer is never called slow."""


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
    longest: float = LONGEST_AFTER_SLOW,
    report: Callable[[Round], None],
    notify: Callable[[str], None],
    waiting: Callable[[float, str | None], None] = lambda _pause, _problem: None,
    once: bool = False,
) -> None:
    """Run rounds until stopped, between two of them; with `once`, until nothing is left to catch up with.

    The pause is `interval`, or 20 times what reading the queue took, up to `longest` seconds. A problem, and a slow cluster, is
    reported once when it begins, and once when it is over. `waiting` gets each pause and why the round before it failed.
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
            pause = min(interval * 2**failures, max(interval, LONGEST))
            failures = min(failures + 1, 16)
            _report_once({str(error): f"{error} (trying again)"}, reported, notify)
            waiting(pause, str(error))
            continue
        wanted, most = COST_SHARE * done.cost, max(interval, longest)
        pause = 0.0 if done.behind else min(max(interval, wanted), most)
        troubles = {trouble: trouble for trouble in done.troubles}
        if wanted > most and done.cost > _SLOW:
            troubles["slow"] = (
                f"the cluster is slow: reading its queue took {done.cost:.0f} s; next in {pause:.0f} s"
            )
        if failures or (reported and not troubles):
            notify("all answer again")
            reported.clear()
        failures = 0
        _report_once(troubles, reported, notify)
        report(done)
        waiting(pause, None)
        if once and not done.behind:
            return


def _report_once(problems: dict[str, str], reported: set[str], notify: Callable[[str], None]) -> None:
    for problem, text in problems.items():
        if problem not in reported:
            reported.add(problem)
            notify(text)
