"""The cluster that `watch` follows: a Slurm, one known by its job events in Kafka, or the demo's."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.causes import causes_at_end
from tocsin.app.clusters import live_cluster, require_cluster
from tocsin.app.first_metrics import measure_due
from tocsin.app.loop import WallClock
from tocsin.app.stream import INTERVAL, job_events
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.core.ports import Actuator, Clock, Cluster
    from tocsin.demo.cluster import DemoCluster
    from tocsin.demo.scripted_jobs import ScriptedJobs
    from tocsin.history.ledger import Ledger
    from tocsin.judge.judge import Judge
    from tocsin.store.outbox import Subscriptions
    from tocsin.watch.challengers import Challengers
    from tocsin.watch.due_verdicts import OnVerdicts
    from tocsin.watch.loop import Rounds

__all__ = ["Source", "demo_cluster", "live_slurm", "streamed"]

DEMO_INTERVAL = 0.25
"""Minimum real seconds between two rounds of the demo: without a pause, rounds took a third of a core and looked no
different."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A cluster to follow, and how."""

    name: str
    clock: "Clock"
    reading: Callable[[], float]
    """The cluster's time; reading it has no side effect."""
    interval: float
    rounds: "Callable[[Judge, Ledger, Subscriptions, Challengers, OnVerdicts | None], Rounds]"
    live: bool
    """Whether it is a Slurm that can be asked what a user may request."""
    concerns: Callable[[], Sequence[str]] = tuple
    """Why its answers may be misread."""
    overdue: Callable[[], float] = lambda: 0.0
    """Seconds for which it has not answered, beyond the usual time."""
    actuator: "Actuator | None" = None
    """Carries out actions on its jobs; None for the demo's."""


@contextmanager
def live_slurm(app: App, name: str | None, *, once: bool = False) -> Iterator[Source]:
    """The named cluster, or this host's. The name is part of every job's key, so it is never guessed.

    With `once`, accounting is awaited however long that takes.
    """
    if name:
        require_cluster(app, name)
    with live_cluster(app, name, guess=False) as cluster:
        off = None if app.settings.watch.scripts else "watch.scripts is false"
        unreadable = off or cluster.scripts_refused(user_name())
        if unreadable:
            app.notify(f"job scripts are not read, so workloads are not classified: {unreadable}")
        clock = WallClock()
        yield Source(
            name=cluster.name,
            clock=clock,
            reading=clock.now,
            interval=_interval(app),
            rounds=partial(_watcher, app, cluster, unreadable, patience=inf if once else 0.0),
            live=True,
            concerns=cluster.rest.concerns if cluster.rest else tuple,
            overdue=cluster.overdue,
            actuator=cluster,
        )


@contextmanager
def streamed(app: App, name: str | None) -> Iterator[Source]:
    """The cluster of this name, by its job events in Kafka."""
    from tocsin.watch.stream_rounds import StreamRounds

    with job_events(app, name) as events:

        def rounds(
            judge: "Judge",
            ledger: "Ledger",
            sinks: "Subscriptions",
            challengers: "Challengers",
            _stored: "OnVerdicts | None",
        ) -> "Rounds":
            return StreamRounds(
                events,
                app.store,
                judge,
                ledger,
                folder=app.home.scripts,
                sinks=sinks,
                measure=measure_due(app, events.name),
                challengers=challengers,
                notify=app.notify,
            )

        clock = WallClock()
        yield Source(
            name=events.name, clock=clock, reading=clock.now, interval=INTERVAL, rounds=rounds, live=False
        )


@contextmanager
def demo_cluster(app: App, speed: float, *, with_scripted_jobs: bool = False) -> Iterator[Source]:
    """The demo cluster at the instant up to which the store knows it."""
    from tocsin.demo.cluster import START, DemoCluster
    from tocsin.demo.scripted_jobs import ScriptedJobs
    from tocsin.store.importing import furthest_position
    from tocsin.store.jobs import Filter, load

    cluster = DemoCluster()
    last = load(app.store, Filter(clusters=[cluster.name], order="-submit", limit=1), ["submit"])["submit"]
    at = max(START + 8 * 3600, furthest_position(app.store, f"watch:{cluster.name}") or 0, *last)
    cluster.clock.advance_to(at)
    clock = _DemoClock(
        cluster, speed, time.monotonic(), at, ScriptedJobs(cluster) if with_scripted_jobs else None
    )
    yield Source(
        name=cluster.name,
        clock=clock,
        reading=clock.reading,
        interval=max(_interval(app) / speed, DEMO_INTERVAL),
        rounds=partial(_watcher, app, cluster, None, outputs=False),
        live=False,
    )


@dataclass(slots=True)
class _DemoClock:
    """The demo's clock, driven by the real one."""

    cluster: "DemoCluster"
    speed: float
    begun: float
    at: float
    scripted_jobs: "ScriptedJobs | None" = None

    def reading(self) -> float:
        """The cluster's time, without advancing the cluster."""
        return self.at + (time.monotonic() - self.begun) * self.speed

    def now(self) -> float:
        self.cluster.clock.advance_to(self.reading())
        if self.scripted_jobs:
            self.scripted_jobs.submit_due(self.cluster.clock.now() - self.at)
        return self.cluster.clock.now()


def _interval(app: App) -> float:
    return max(app.settings.watch.interval, 1)


def _watcher(
    app: App,
    cluster: "Cluster",
    unreadable: str | None,
    judge: "Judge",
    ledger: "Ledger",
    sinks: "Subscriptions",
    challengers: "Challengers",
    stored: "OnVerdicts | None",
    *,
    outputs: bool = True,
    patience: float = inf,
) -> "Rounds":
    """`unreadable`: why scripts are not read; `outputs`: whether jobs write files that name a cause.

    `patience`: seconds for which a round waits for accounting.
    """
    from tocsin.watch.script_reader import ScriptReader
    from tocsin.watch.watcher import Watcher

    scripts = None if unreadable else ScriptReader(cluster, app.home.scripts)
    return Watcher(
        cluster,
        app.store,
        judge,
        ledger,
        scripts=scripts,
        sinks=sinks,
        measure=measure_due(app, cluster.name),
        causes=causes_at_end(app, scripts.read if scripts else ledger.script) if outputs else None,
        challengers=challengers,
        stored=stored,
        by_script=_by_script(),
        patience=patience,
    )


def _by_script() -> set[str]:
    """The detectors that need nothing but the script."""
    from tocsin.core.detector import Need
    from tocsin.judge.plugins import find_detectors

    return {name for name, detector in find_detectors().items() if set(detector.needs) == {Need.SCRIPTS}}
