"""`nightly`: retrain the models in use, and promote those that are better on held-back data."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from tocsin.app import first_models
from tocsin.app.app import App
from tocsin.app.first_metrics import measure_stored
from tocsin.app.train import threads
from tocsin.core.errors import NotFound, StoreError

if TYPE_CHECKING:
    from tocsin.learn.contest import Contest
    from tocsin.learn.contest_traces import NormalWindows
    from tocsin.learn.nightly import Outcome

__all__ = ["LOCK", "AlreadyRunning", "NightlyRequest", "contests", "nightly"]

JOURNAL = "nightly.json"
LOCK = "nightly"
"""Held by the process that retrains: a timer, the service, or `watch`."""
KEEP_SCORES = 90 * 86_400
"""Seconds for which the scores of challengers are kept; live figures read 28 days."""


class AlreadyRunning(StoreError):
    """Another process is retraining with this store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRequest:
    detectors: Sequence[str] = ()
    """By default, all with a trained model."""
    cluster: str | None = None
    dry_run: bool = False


def nightly(
    app: App,
    request: NightlyRequest,
    *,
    who: str | None = None,
    now: int | None = None,
    reached: Callable[[str], None] = lambda _: None,
) -> "list[Outcome]":
    """The outcome for each model in use and for first models; `reached` is called between any two steps.

    Only one run at a time, whoever starts it (by default the current user). Detectors named in the request are
    retrained whatever their period.
    """
    from tocsin.store import learning_runs, scores
    from tocsin.store.home import user_name
    from tocsin.store.learning_runs import RunState
    from tocsin.store.locks import locked

    now = int(time.time()) if now is None else now
    wanted = _wanted(app, request.detectors)
    app.home.prepare()
    with locked(app.store, LOCK) as held:
        if not held:
            raise AlreadyRunning("another `tocsin nightly` is running with this store; this one stops")
        if request.dry_run:
            return _run(app, request, wanted, now, reached)
        learning_runs.interrupt(app.store)  # of a killed process: nobody else holds the lock
        number = learning_runs.begin(app.store, who=who or user_name(), at=now)
        try:
            measure_stored(app)
            scores.forget(app.store, before=now - KEEP_SCORES)
            found = _run(app, request, wanted, now, reached)
        except Exception as error:
            learning_runs.end(app.store, number, RunState.FAILED, at=_later(now), error=str(error)[:1000])
            raise
        outcomes = [outcome.to_json() for outcome in found]
        learning_runs.end(app.store, number, RunState.DONE, at=_later(now), outcomes=outcomes)
    return found


def _later(now: int) -> int:
    """The current time; a run in the past, in a test, ends when it began."""
    return max(now, int(time.time()))


def _run(
    app: App, request: NightlyRequest, wanted: Sequence[str], now: int, reached: Callable[[str], None]
) -> "list[Outcome]":
    from tocsin.learn.contest import Night
    from tocsin.learn.journal import Journal
    from tocsin.learn.nightly import Nightly

    known, settings = contests(app), app.settings.learn
    found: list[Outcome] = []
    for name in wanted:
        run = Nightly(
            registry=app.registry,
            contests=known,
            journal=Journal(app.home.models / JOURNAL),
            night=Night(
                store=app.store,
                now=now,
                holdback_days=settings.holdback_days,
                control_share=app.settings.policy.control_percent / 100,
                threads=threads(),
                progress=partial(app.progress, f"retraining {name}"),
            ),
            day=datetime.fromtimestamp(now, app.zone()).date().isoformat(),
            every_days=settings.failure_days if name == "failure" and not request.detectors else 1,
            dry_run=request.dry_run,
            notify=app.notify,
            reached=reached,
        )
        found += run.run(name, request.cluster)
    if not request.detectors or first_models.DETECTOR in request.detectors:
        found += first_models.first_models(app, only=request.cluster, dry_run=request.dry_run)
    return found


def contests(app: App) -> "Mapping[str, Contest]":
    """How each detector is retrained; a plug-in provides its contest as the attribute `contest` of its detector."""
    from tocsin.judge.plugins import find_detectors
    from tocsin.learn.contest import Contest
    from tocsin.learn.contest_execution import ExecutionContest
    from tocsin.learn.contest_failure import FailureContest
    from tocsin.learn.contest_traces import TracesContest

    own = {
        name: contest
        for name, detector in find_detectors().items()
        if isinstance(contest := getattr(detector, "contest", None), Contest)
    }
    return {
        **own,
        "failure": FailureContest(),
        "workload": ExecutionContest(),
        "traces": TracesContest(partial(_normal_windows, app)),
    }


def _normal_windows(app: App, clusters: Sequence[str], since: int, until: int) -> "NormalWindows":
    """The stored windows of normal jobs of these clusters; a model of campaigns has the cluster of its recording."""
    import polars as pl

    from tocsin.app.traces_request import TraceRequest
    from tocsin.app.traces_train import normal_windows
    from tocsin.app.traces_windows import window_store
    from tocsin.core.errors import ModelError
    from tocsin.learn.contest_traces import NormalWindows

    kept = [name for name in clusters if name in window_store(app).clusters()]
    if not kept:
        raise ModelError(
            f"there are no stored traces of {', '.join(clusters)}, so there is nothing to compare on; run: tocsin traces watch"
        )
    parts = [
        normal_windows(app, TraceRequest(cluster=name, starttime=str(since), endtime=str(until)))
        for name in kept
    ]
    return NormalWindows(
        *(pl.concat(frames) for frames in zip(*((p.windows, p.jobs) for p in parts), strict=True))
    )


def _wanted(app: App, names: Sequence[str]) -> list[str]:
    known = app.registry.detectors()
    if unknown := [name for name in names if name not in known]:
        raise NotFound(f'no detector "{unknown[0]}" with models; detectors with models: {", ".join(known)}')
    return [name for name in known if not names or name in names]
