"""`connect slurm-to-kafka`: publish the job events of a cluster, as `watch` would see them, to Kafka.

It is a watch without detectors on a store of its own, which holds what was published: it may be killed at any time,
no event is lost, and a repeated event is identical to the byte.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import live_cluster, require_cluster
from tocsin.app.loop import WallClock, stop_on_signals
from tocsin.app.sinks import Sinks
from tocsin.app.text import count
from tocsin.core.errors import StoreError
from tocsin.core.sink_settings import KafkaSinkSettings
from tocsin.store.home import Home, user_name

if TYPE_CHECKING:
    from tocsin.core.ports import Cluster
    from tocsin.store.database import Store
    from tocsin.watch.watcher import Round, Watcher

__all__ = ["ConnectRequest", "slurm_to_kafka"]

KEEP = 3 * 86400
"""Seconds for which an ended job is kept, so that it is not published again."""
PRUNE_EVERY = 3600
SINK = "kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRequest:
    cluster: str | None = None
    topic: str = "tocsin.jobs"
    scripts: bool = False
    """Also send the text of job scripts."""
    once: bool = False
    """Publish what is there, then end."""


def slurm_to_kafka(app: App, request: ConnectRequest) -> None:
    """Publish until stopped by a signal."""
    from tocsin.sinks.kafka import KafkaSink
    from tocsin.store.database import open_store
    from tocsin.store.locks import locked
    from tocsin.store.outbox import states
    from tocsin.watch.loop import run

    settings = KafkaSinkSettings(kind="kafka", messages="job", topic=request.topic)
    sink = KafkaSink(SINK, app.settings.kafka, settings)
    if request.cluster:
        require_cluster(app, request.cluster)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        cluster = stack.enter_context(live_cluster(app, request.cluster, guess=False))
        home = Home(app.home.prepare().root / "connect" / cluster.name).prepare()
        store = stack.enter_context(open_store(home.url))
        if not stack.enter_context(locked(store, "connect")):
            raise StoreError(f'another `tocsin connect` publishes cluster "{cluster.name}"; this one stops')
        if request.scripts and (refused := cluster.scripts_refused(user_name())):
            app.notify(f"job scripts are not sent: {refused}")
        sinks = Sinks(store, [sink], {SINK: settings.subscription(SINK)})
        publish = stack.enter_context(sinks.delivering(app.notify))
        prune = _pruning(store, home)

        def after(_: "Round") -> None:
            publish()
            prune()

        app.notify(f"publishing jobs of {cluster.name} to the topic {request.topic}")
        interval = max(app.settings.watch.interval, 1)
        watcher = _watcher(cluster, store, home, sinks, scripts=request.scripts)
        stack.callback(
            lambda: app.notify(f"{count(states(store, [SINK])[SINK].sent, 'event')} published so far")
        )
        run(watcher, WallClock(), stop, interval=interval, report=after, notify=app.notify, once=request.once)


def _watcher(cluster: "Cluster", store: "Store", home: Home, sinks: Sinks, *, scripts: bool) -> "Watcher":
    from tocsin.history.ledger import Ledger
    from tocsin.judge.judge import Judge
    from tocsin.watch.job_events import JobEvents
    from tocsin.watch.script_reader import ScriptReader
    from tocsin.watch.watcher import Watcher

    reader = ScriptReader(cluster, home.scripts) if scripts else None
    events = JobEvents(sinks.subscriptions, reader.read if reader else None)
    return Watcher(cluster, store, Judge({}), Ledger(), scripts=reader, events=events)


def _pruning(store: "Store", home: Home) -> Callable[[], None]:
    """Removes jobs that ended long ago, once an hour."""
    from tocsin.store.retention import prune

    last = time.monotonic()

    def step() -> None:
        nonlocal last
        if time.monotonic() - last >= PRUNE_EVERY:
            prune(store, home, before=int(time.time()) - KEEP)
            last = time.monotonic()

    return step
