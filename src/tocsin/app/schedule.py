"""When the service retrains: daily from a given hour on, and again after a run that did not finish."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import SettingsError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from tocsin.store.learning_runs import LearningRun

__all__ = ["BY_SERVICE", "due_at", "next_run"]

BY_SERVICE = "service"
"""Who starts a run that was due."""
AGAIN = 3600
"""Seconds until a failed or interrupted run is retried."""
MOST_TRIES = 3
"""Per day: a run that failed three times will fail again, and each try costs minutes of computing."""


def next_run(app: App, now: int) -> int | None:
    """When the service retrains next; None: never automatically. A run whose process died is marked as interrupted."""
    from tocsin.app.nightly import LOCK
    from tocsin.store import learning_runs
    from tocsin.store.learning_runs import RunState
    from tocsin.store.locks import locked

    settings = app.settings.learn
    if not settings.in_service:
        return None
    if settings.hour > 23:
        raise SettingsError(f"learn.hour is {settings.hour}; it must be between 0 and 23")
    runs = learning_runs.last_runs(app.store)
    if any(run.state is RunState.RUNNING for run in runs):
        with locked(app.store, LOCK) as free:
            if free:
                learning_runs.interrupt(app.store)
        runs = learning_runs.last_runs(app.store)
    return due_at(runs, now=now, hour=settings.hour, zone=app.zone())


def due_at(runs: "Sequence[LearningRun]", *, now: int, hour: int, zone: "ZoneInfo") -> int:
    """The instant from which a run is due; `runs` are the last ones, newest first."""
    from tocsin.store.learning_runs import RunState

    local = datetime.fromtimestamp(now, zone)
    slot = local.replace(hour=hour, minute=0, second=0, microsecond=0)
    if slot > local:
        slot -= timedelta(days=1)
    tomorrow = round((slot + timedelta(days=1)).timestamp())
    since = [run for run in runs if run.started >= slot.timestamp()]
    if not since:
        return round(slot.timestamp())
    ended_badly = (RunState.FAILED, RunState.INTERRUPTED)
    if len(since) >= MOST_TRIES or any(run.state not in ended_badly for run in since):
        return tomorrow
    return min(since[0].started + AGAIN, tomorrow)
