"""Retrains the model for ended jobs when it is due, in a child process so that nothing waits for it."""

import os
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Self

from tocsin.app.app import App
from tocsin.app.children import BACKGROUND, Child, start
from tocsin.app.nightly import LOCK
from tocsin.core.errors import TocsinError

__all__ = ["Retraining"]

DAY = 86_400
AGAIN = 3600
"""Seconds until a failed training is retried."""


class Retraining:
    """Retrains every β days on the jobs that ended in the last α days (RoWD, section 4.2)."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._child: Child | None = None

    def poll(self, now: int | None = None) -> str | None:
        """Start a training that is due; returns the message of one that has ended, if any."""
        if self._child:
            return self._ended() if self._child.pipe.poll() else None
        now = int(time.time()) if now is None else now
        tried = self._app.home.cache / "execution-training"  # shared by all processes
        if tried.exists() and 0 <= now - tried.stat().st_mtime < AGAIN:
            return None
        message, starts = None, False
        try:
            if not self._is_due(now):
                return None
            starts = self._has_labels(now)
        except TocsinError as error:
            message = f"the model for ended jobs cannot be retrained: {error}"
        tried.touch()
        os.utime(tried, (now, now))
        if starts:
            app = App(self._app.config_file, self._app.folder, dict(self._app.environ))
            self._child = start(_train, app, now, nice=BACKGROUND)
        return message

    @property
    def runs(self) -> bool:
        return self._child is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop a training that still runs; a model version appears completely or not at all."""
        if self._child:
            self._child.process.terminate()
            self._close()

    def _is_due(self, now: int) -> bool:
        beta_days = self._app.settings.workload.beta_days
        if not beta_days:
            return False
        from tocsin.core.stages import Stage
        from tocsin.learn.train_execution import execution_is_due

        if self._app.registry.held("workload", Stage.END):
            return False
        return execution_is_due(self._app.registry, now=now, beta_days=beta_days)

    def _has_labels(self, now: int) -> bool:
        from tocsin.store import screenings

        since = now - self._app.settings.workload.alpha_days * DAY
        return bool(screenings.operations_by_job(self._app.store, since=since))

    def _ended(self) -> str | None:
        assert self._child, "it was started"
        message: str | None = "retraining the model for ended jobs failed; try: tocsin train execution"
        with suppress(EOFError, ConnectionError):
            message = self._child.pipe.recv()
        self._close()
        return message

    def _close(self) -> None:
        if self._child:
            self._child.pipe.close()
            self._child.process.join()
            self._child = None


def _train(app: App, now: int, pipe: "Connection[Any, Any]") -> None:
    """Runs in the child: train, promote and report. Having nothing to learn from yet is not an error."""
    from tocsin.core.stages import Stage
    from tocsin.learn.train_execution import train_on_store
    from tocsin.store.locks import locked

    app.home.prepare()
    try:
        with app, locked(app.store, LOCK) as held:
            if not held:  # a nightly run is active; try again later
                pipe.send(None)
                return
            kept = train_on_store(
                app.store,
                app.registry,
                now=now,
                alpha_days=app.settings.workload.alpha_days,
                why="retrained (workload.beta_days)",
                unless_held=True,
            )
        names = ", ".join(kept.model.in_use)
        refused = "; ".join(f"{name}: {why}" for name, why in kept.refused.items())
        pipe.send(
            f"retrained the model for ended jobs ({names}): workload {kept.version} is now in use"
            if kept.promoted
            else f"retrained the model for ended jobs: workload {kept.version} is stored but not in use ({refused or 'it was rolled back'})"
        )
    except TocsinError as error:
        overdue = app.registry.champion("workload", Stage.END) is not None
        pipe.send(f"the model for ended jobs could not be retrained: {error}" if overdue else None)
