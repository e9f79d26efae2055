"""`watch`: follow a live cluster, or the demo's, and give verdicts as its jobs change."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tocsin.app.actions import Acting, mode_text
from tocsin.app.app import App
from tocsin.app.clusters import live_cluster, require_cluster
from tocsin.app.first_metrics import measure_due
from tocsin.app.heartbeat import beating, watch_lock
from tocsin.app.judge import LiveJudge
from tocsin.app.loop import Loop, Output, WallClock, open_log, stop_on_signals, subscriptions
from tocsin.app.policy import live_policy
from tocsin.core.errors import InputError, StoreError
from tocsin.store.home import user_name

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.ports import Actuator, Clock, Cluster
    from tocsin.demo.cluster import DemoCluster
    from tocsin.history.ledger import Ledger
    from tocsin.store.database import Store
    from tocsin.watch.watcher import Round

__all__ = ["WatchRequest", "watch"]

SAVE_EVERY = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    cluster: str | None = None
    demo: bool = False
    speed: float = 60.0
    """Of the demo: simulated seconds per real second."""
    once: bool = False
    """Catch up, then end."""


def watch(app: App, request: WatchRequest, output: Output) -> None:
    """Follow the cluster until stopped by a signal."""
    from tocsin.store.locks import locked
    from tocsin.watch.script_reader import ScriptReader
    from tocsin.watch.watcher import Watcher

    demo, once = request.demo, request.once
    if demo and request.cluster not in (None, "demo"):
        raise InputError(f'the demo cluster is named "demo", not "{request.cluster}"; leave out -M or --demo')
    settings = app.settings.watch
    folder = app.home.prepare().scripts
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        followed, clock, unreadable, actuator = stack.enter_context(
            _demo(app.store, request.speed) if demo else _live(app, request.cluster)
        )
        if not stack.enter_context(locked(app.store, watch_lock(followed.name))):
            raise StoreError(
                f'another `tocsin watch` follows cluster "{followed.name}" with this store; this one stops'
            )
        if unreadable:
            app.notify(f"job scripts are not read, so workloads are not classified: {unreadable}")
        ledger, keep = stack.enter_context(_ledger(app, followed.name))
        scripts = None if unreadable else ScriptReader(followed, folder)
        policy = live_policy(app, simulated=demo)
        live, log = LiveJudge(app, ledger, cluster=followed.name, policy=policy), open_log(app)
        acting = Acting(app, actuator, subscriptions(log)) if actuator else None

        def finished(done: "Round") -> None:
            keep()
            for trouble in acting.after_round(done.verdicts, done.at) if acting else ():
                app.notify(f"tocsin: {trouble}")

        loop = Loop(
            app=app,
            rounds=Watcher(
                followed,
                app.store,
                live.judge,
                ledger,
                scripts=scripts,
                sinks=subscriptions(log),
                measure=measure_due(app, followed.name),
            ),
            live=live,
            output=output,
            log=log,
            finished=finished,
            waiting=stack.enter_context(beating(app.home.cache, followed.name)),
        )
        app.notify(f"watching {followed.name}; {mode_text(app)}")
        interval = max(settings.interval, 1) / (request.speed if demo else 1)
        # simulated jobs, and those of a single pass, are nothing to learn from
        loop.run(clock, stop, interval=interval, once=once, retrain=not demo and not once)


class _Source(NamedTuple):
    """A cluster to follow, and what is known about it."""

    cluster: "Cluster"
    clock: "Clock"
    unreadable: str | None = None
    """Why its scripts are not read."""
    actuator: "Actuator | None" = None
    """What can be done to its jobs; nothing to the demo's."""


@dataclass(frozen=True, slots=True)
class _DemoClock:
    """The demo's clock, driven by the real one."""

    cluster: "DemoCluster"
    speed: float
    begun: float
    at: float

    def now(self) -> float:
        self.cluster.clock.advance_to(self.at + (time.monotonic() - self.begun) * self.speed)
        return self.cluster.clock.now()


@contextmanager
def _demo(store: "Store", speed: float) -> "Iterator[_Source]":
    """The demo cluster at the instant up to which the store knows it."""
    from tocsin.demo.cluster import START, DemoCluster
    from tocsin.store.importing import furthest_position
    from tocsin.store.jobs import Filter, load

    cluster = DemoCluster()
    last = load(store, Filter(clusters=[cluster.name], order="-submit", limit=1), ["submit"])["submit"]
    at = max(START + 8 * 3600, furthest_position(store, f"watch:{cluster.name}") or 0, *last)
    cluster.clock.advance_to(at)
    yield _Source(cluster, _DemoClock(cluster, speed, time.monotonic(), at))


@contextmanager
def _live(app: App, name: str | None) -> "Iterator[_Source]":
    """The named cluster, or this host's. Its name is part of every job's key: never guessed."""
    if name:
        require_cluster(app, name)
    with live_cluster(app, name, guess=False) as cluster:
        off = None if app.settings.watch.scripts else "watch.scripts is false"
        yield _Source(cluster, WallClock(), off or cluster.scripts_refused(user_name()), cluster)


@contextmanager
def _ledger(app: App, cluster: str) -> "Iterator[tuple[Ledger, Callable[[], None]]]":
    """The cluster's history from the cache or the store; saved to the cache every hour and at the end."""
    from tocsin.history.snapshot import open_ledger, save_ledger
    from tocsin.store import watching

    folder = app.home.cache / "history" / cluster
    folder.mkdir(parents=True, exist_ok=True)
    saved = time.monotonic()

    def fingerprint(until: int) -> str:
        return watching.fingerprint(app.store, cluster, until)

    def keep() -> None:
        nonlocal saved
        if time.monotonic() - saved >= SAVE_EVERY:
            save_ledger(folder, ledger, fingerprint)
            saved = time.monotonic()

    ledger = open_ledger(folder, lambda since: _past_jobs(app.store, cluster, since), fingerprint)
    try:
        yield ledger, keep
    finally:
        with suppress(StoreError, OSError):  # it is a cache: the next start rebuilds it
            save_ledger(folder, ledger, fingerprint)


def _past_jobs(store: "Store", cluster: str, since: int) -> "pl.DataFrame":
    """Jobs alive at this instant or later, without pending arrays: their tasks count as they start."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    jobs = load(store, Filter(clusters=[cluster], since=since or None))
    return jobs.filter(pl.col("array").is_null() | pl.col("outcome").is_not_null())
