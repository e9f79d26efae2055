"""The execution-time models learned anew when it is time: in a child process, so that nobody waits for it."""

import os
import signal
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, NamedTuple, Self

from tocsin.app.app import App
from tocsin.core.errors import TocsinError

__all__ = ["Retraining"]

DAY = 86_400
AGAIN = 3600
"""Seconds after which a training that was not possible is tried again."""
NICE = 10
"""What watches a cluster, or runs beside us, goes first."""


class _Child(NamedTuple):
    process: SpawnProcess
    line: "Connection[Any, Any]"


class Retraining:
    """Every β days on the jobs that ended in the last α (RoWD, section 4.2), as the settings say."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._child: _Child | None = None

    def look(self, now: int | None = None) -> str | None:
        """Begin a training that is due; what one that has ended has to say, or nothing."""
        if self._child:
            return self._ended() if self._child.line.poll() else None
        now = int(time.time()) if now is None else now
        tried = self._app.home.cache / "execution-training"  # one note for all processes
        if tried.exists() and 0 <= now - tried.stat().st_mtime < AGAIN:
            return None
        sentence, begins = None, False
        try:
            if not self._is_due(now):
                return None
            begins = self._has_labels(now)
        except TocsinError as error:
            sentence = f"what ended jobs were cannot be learned anew: {error}"
        tried.touch()
        os.utime(tried, (now, now))
        if begins:
            self._child = _start(self._app, now)
        return sentence

    @property
    def runs(self) -> bool:
        return self._child is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """What is not done yet another process begins again; a version appears whole or not at all."""
        if self._child:
            self._child.process.terminate()
            self._close()

    def _is_due(self, now: int) -> bool:
        beta_days = self._app.settings.workload.beta_days
        if not beta_days:
            return False
        from tocsin.learn.train_execution import execution_is_due

        return execution_is_due(self._app.registry, now=now, beta_days=beta_days)

    def _has_labels(self, now: int) -> bool:
        from tocsin.store import screenings

        since = now - self._app.settings.workload.alpha_days * DAY
        return bool(screenings.operations_by_job(self._app.store, since=since))

    def _ended(self) -> str | None:
        assert self._child, "it was begun"
        sentence: str | None = "learning anew what ended jobs were failed; try: tocsin train execution"
        with suppress(EOFError, ConnectionError):
            sentence = self._child.line.recv()
        self._close()
        return sentence

    def _close(self) -> None:
        if self._child:
            self._child.line.close()
            self._child.process.join()
            self._child = None


def _start(app: App, now: int) -> _Child:
    ours, theirs = get_context("spawn").Pipe(duplex=False)
    given = App(app.config_file, app.folder, dict(app.environ))
    process = get_context("spawn").Process(target=_train, args=(given, now, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Child(process, ours)


def _train(app: App, now: int, line: "Connection[Any, Any]") -> None:
    """In the child: train, promote, and say so. That there is nothing to learn from yet is no trouble."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    os.nice(NICE)
    from tocsin.core.stages import Stage
    from tocsin.learn.train_execution import train_on_store

    app.home.prepare()
    try:
        with app:
            kept = train_on_store(
                app.store,
                app.registry,
                now=now,
                alpha_days=app.settings.workload.alpha_days,
                why="retrained (workload.beta_days)",
            )
        names = ", ".join(kept.model.operations)
        line.send(f"learned anew what ended jobs were ({names}): workload {kept.version} is in service")
    except TocsinError as error:
        overdue = app.registry.champion("workload", Stage.END) is not None
        line.send(f"what ended jobs were could not be learned anew: {error}" if overdue else None)
