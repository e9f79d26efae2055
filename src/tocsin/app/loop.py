"""The loop of `watch` and `screen`: models reloaded before each round; verdicts sent to sinks and printed after it."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.judge import LiveJudge
from tocsin.app.sinks import Sinks
from tocsin.app.verdict_lines import VerdictLines

if TYPE_CHECKING:
    from tocsin.core.ports import Clock
    from tocsin.watch.loop import Rounds, Stop
    from tocsin.watch.watcher import Round

__all__ = ["Loop", "Output", "WallClock", "stop_on_signals"]


@dataclass(frozen=True, slots=True)
class Output:
    """Which verdicts are printed, and how."""

    print_line: Callable[[str], None]
    everything: bool = False
    as_json: bool = False
    unknown: bool = True
    """Also print verdicts that could not be given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Runs rounds, and what happens around them."""

    app: App
    rounds: "Rounds"
    live: LiveJudge
    output: Output
    sinks: Sinks
    finished: Callable[["Round"], None]
    """Called after each round, once its verdicts are printed."""
    waiting: Callable[[float, str | None], None] = lambda _pause, _problem: None
    """Called before each pause with its length in seconds and the error that caused it."""

    def run(self, clock: "Clock", stop: "Stop", *, interval: float, once: bool, retrain: bool) -> None:
        """Run rounds until stopped; with `once`, until nothing is left to do and a retraining has ended."""
        from tocsin.app.retraining import Retraining
        from tocsin.watch.loop import run

        app, output = self.app, self.output
        with ExitStack() as stack:
            retraining = stack.enter_context(Retraining(app)) if retrain else None
            lines = VerdictLines(
                app.store,
                output.print_line,
                app.zone,
                everything=output.everything,
                as_json=output.as_json,
                unknown=output.unknown,
            )
            stack.callback(lines.end)

            def after(done: "Round") -> None:
                wake_sinks()
                lines.add(done.verdicts)
                if not done.behind:
                    lines.end()
                self.finished(done)
                if retraining and not done.behind:
                    self._report(retraining.poll())

            def report_problem(problem: str) -> None:
                app.notify(f"tocsin: {problem}")

            wake_sinks = stack.enter_context(self.sinks.delivering(report_problem))
            run(
                self,
                clock,
                stop,
                interval=interval,
                longest=_longest_pause(app),
                report=after,
                notify=report_problem,
                waiting=self.waiting,
                once=once,
            )
            while retraining and once and retraining.runs and not stop.wait(0.1):
                self._report(retraining.poll())

    def step(self, now: int) -> "Round":
        """One round, with the models in use now."""
        if self.live.reload():
            self.app.notify("other models were promoted and are now in use")
        return self.rounds.step(now)

    def _report(self, message: str | None) -> None:
        if message:
            self.app.notify(message)


def _longest_pause(app: App) -> float:
    """In seconds, after a slow answer: a job must be examined within its screening window."""
    from tocsin.core.actions import Mode
    from tocsin.watch.loop import LONGEST_AFTER_SLOW

    policy = app.settings.policy
    window = policy.screening_seconds if policy.mode == Mode.ACT else 0
    return min(LONGEST_AFTER_SLOW, window / 4) if window else LONGEST_AFTER_SLOW


@dataclass(frozen=True, slots=True)
class WallClock:
    def now(self) -> float:
        return time.time()


@contextmanager
def stop_on_signals() -> "Iterator[Stop]":
    """A Stop that SIGTERM and SIGINT set."""
    from tocsin.watch.loop import Stop

    with Stop() as stop, stop.on_signals(signal.SIGTERM, signal.SIGINT):
        yield stop
