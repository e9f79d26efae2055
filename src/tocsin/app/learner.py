"""The learning thread of a service: starts retraining and measurements in child processes when they are due."""

import logging
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.children import BACKGROUND, Child, start
from tocsin.app.learning import LiveMeasurement, learning, measure_live
from tocsin.app.schedule import BY_SERVICE, next_run
from tocsin.app.tasks import Kind, Task, Tasks
from tocsin.core.errors import TocsinError

if TYPE_CHECKING:
    from tocsin.store.learning_runs import LearningRun
    from tocsin.watch.loop import Stop

__all__ = ["Learner", "Measuring"]

FIRST_LOOK = 30.0
"""Seconds after the start of a service that are left for loading histories."""
LOOK_EVERY = 5.0
RETRY = 60.0
"""Seconds until the next attempt when another process is retraining."""
MEASURE_EVERY = 900.0
"""Seconds between two measurements: outcomes arrive slowly."""
_SHARE = 50
"""A slow measurement is repeated after this many times its duration."""
_TEXTS = {
    "promoted": "{challenger} is now in use instead of {champion}: {why}",
    "kept": "{champion} stays in use, {challenger} does not replace it: {why}",
    "failed": "{champion} stays in use: {why}",
}


class Learner:
    """Call `run` in a thread; other methods may be called from any thread."""

    def __init__(self, app: App, tasks: Tasks, *, retrains: bool) -> None:
        self._app, self._tasks, self._retrains = app, tasks, retrains
        self._not_before = 0.0
        self._task: Task | None = None
        self.measuring = Measuring(app)

    def run(self, stop: "Stop") -> None:
        """Until stopped."""
        reported, pause = "", FIRST_LOOK
        try:
            while not stop.wait(pause):
                pause = LOOK_EVERY
                try:
                    self.measuring.poll(time.monotonic())
                    self._report()
                    self._retrain_if_due()
                except Exception as error:  # no error may end the learning for good
                    if not isinstance(error, TocsinError | OSError):
                        logging.getLogger("tocsin.service").exception("retraining and measuring failed")
                    if str(error) != reported:
                        self._app.notify(f"tocsin: the models are not retrained: {error} (trying again)")
                        reported = str(error)
        finally:
            self.measuring.close()

    def _retrain_if_due(self) -> None:
        now = int(time.time())
        if not self._retrains or time.monotonic() < self._not_before or self._tasks.running(Kind.CONTEST):
            return
        due = next_run(self._app, now)
        if due is not None and due <= now:
            self._not_before = time.monotonic() + RETRY
            self._task = self._tasks.start(Kind.CONTEST, {}, who=BY_SERVICE)

    def _report(self) -> None:
        """Report the result of a run that was due; runs that others started report for themselves."""
        task = self._task
        if task is None or task.ended is None:
            return
        self._task = None
        if task.error:
            self._app.notify(f"tocsin: retraining failed: {task.error}")
        for outcome in task.result["outcomes"] if task.result else ():
            if text := _TEXTS.get(outcome["state"]):
                where = f" on {outcome['cluster']}" if outcome["cluster"] else ""
                self._app.notify(
                    f"{outcome['detector']} at {outcome['stage']}{where}: {text.format(**outcome)}"
                )

    @property
    def measured(self) -> LiveMeasurement | None:
        """The live figures, once measured."""
        return self.measuring.last

    def last_run(self) -> "LearningRun | None":
        """The last nightly run, whoever started it."""
        from tocsin.store.learning_runs import last_runs

        with suppress(TocsinError):  # the store does not answer
            return next(iter(last_runs(self._app.store, 1)), None)
        return None

    def state(self) -> dict[str, Any]:
        """When models are retrained, with what result, and how they perform."""
        running = self._tasks.running(Kind.CONTEST)
        return learning(self._app, self.measured, now=int(time.time()), running=running)


class Measuring:
    """Live figures of a service, measured now and then in a child process."""

    def __init__(self, app: App, every: float = MEASURE_EVERY) -> None:
        self._app, self._every = app, every
        self._child: Child | None = None
        self._began = self._next = 0.0
        self.last: LiveMeasurement | None = None

    def poll(self, now: float) -> None:
        """Start a measurement that is due, and collect the result of one that has ended."""
        if self._child is not None:
            if self._child.pipe.poll():
                self._collect(self._child)
                self._next = max(self._next, now + _SHARE * (now - self._began))
        elif now >= self._next:
            app = App(self._app.config_file, self._app.folder, dict(self._app.environ))
            self._child = start(_measure, app, nice=BACKGROUND)
            self._began, self._next = now, now + self._every

    def close(self) -> None:
        if self._child is not None:
            self._child.process.terminate()
            self._end(self._child)

    def _collect(self, child: Child) -> None:
        try:
            found = child.pipe.recv()
        except (EOFError, OSError):
            found = "its process died"
        self._end(child)
        if isinstance(found, LiveMeasurement):
            self.last = found
        else:
            self._app.notify(f"tocsin: the live figures could not be measured: {found}")

    def _end(self, child: Child) -> None:
        child.pipe.close()
        child.process.join()
        self._child = None


def _measure(app: App, pipe: "Connection[Any, Any]") -> None:
    """Runs in the child."""
    try:
        with app:
            found: LiveMeasurement | str = measure_live(app)
    except TocsinError as error:
        found = str(error)
    with suppress(BrokenPipeError):  # the service was killed meanwhile
        pipe.send(found)
