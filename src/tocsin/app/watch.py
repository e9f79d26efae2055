"""`watch`: follow a live cluster, or the demo's, and give verdicts as its jobs change."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tocsin.app.actions import Acting, mode_text
from tocsin.app.app import App
from tocsin.app.challengers import open_challengers
from tocsin.app.followed import Source, demo_cluster, live_slurm, streamed
from tocsin.app.heartbeat import beating, watch_lock
from tocsin.app.judge import LiveJudge
from tocsin.app.ledger import open_history
from tocsin.app.loop import Loop, Output, stop_on_signals
from tocsin.app.policy import live_policy
from tocsin.app.sinks import open_sinks
from tocsin.app.stream import is_streamed
from tocsin.core.errors import InputError, StoreError

if TYPE_CHECKING:
    from tocsin.core.verdict import Verdict
    from tocsin.history.ledger import Ledger
    from tocsin.watch.loop import Stop
    from tocsin.watch.watcher import Round

__all__ = ["Followed", "Observer", "WatchRequest", "follow", "watch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    cluster: str | None = None
    demo: bool = False
    speed: float = 60.0
    """Demo speed: simulated seconds per real second."""
    once: bool = False
    """Catch up, then end."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A cluster that is followed: its history, which only the watch advances, and its clock."""

    name: str
    ledger: "Ledger"
    now: Callable[[], float]
    """The cluster's time; reading it has no side effect."""
    live: bool = True
    """Whether it is a Slurm that can be asked what a user may request."""
    concerns: Callable[[], Sequence[str]] = tuple
    """Why its answers may be misread."""
    overdue: Callable[[], float] = lambda: 0.0
    """Seconds for which it has not answered, beyond the usual time."""

    @classmethod
    def of(cls, source: Source, ledger: "Ledger") -> Self:
        return cls(
            source.name,
            ledger,
            source.reading,
            live=source.live,
            concerns=source.concerns,
            overdue=source.overdue,
        )


class Observer:
    """Receives events from `follow`; by default, it does nothing."""

    def began(self, followed: Followed) -> None:
        """Called before the first round."""

    def stored(self) -> None:
        """Called during a round, once some of its verdicts are stored."""

    def finished(self, done: "Round") -> None:
        """Called after each round, once its verdicts are stored."""

    def waiting(self, pause: float, problem: str | None) -> None:
        """Called before each pause, with the error that caused it."""


def watch(app: App, request: WatchRequest, output: Output) -> None:
    """Follow the cluster until stopped by a signal."""
    with stop_on_signals() as stop:
        follow(app, request, output, stop, Observer())


def _source(app: App, request: WatchRequest, *, scripted_jobs: bool) -> AbstractContextManager[Source]:
    """Where the jobs come from: the demo, the events of a cluster, or its Slurm."""
    if request.demo:
        if request.cluster not in (None, "demo"):
            raise InputError(
                f'the demo cluster is named "demo", not "{request.cluster}"; leave out -M or --demo'
            )
        return demo_cluster(app, request.speed, with_scripted_jobs=scripted_jobs)
    if is_streamed(app, request.cluster):
        return streamed(app, request.cluster)
    return live_slurm(app, request.cluster, once=request.once)


def follow(
    app: App,
    request: WatchRequest,
    output: Output,
    stop: "Stop",
    observer: Observer,
    *,
    scripted_jobs: bool = False,
) -> None:
    """Follow the cluster until stopped; with `scripted_jobs`, a few illustrative jobs are submitted to the demo's."""
    from tocsin.store.locks import locked
    from tocsin.watch.stages import BITS

    demo, once = request.demo, request.once
    app.home.prepare()
    with ExitStack() as stack:
        source = stack.enter_context(_source(app, request, scripted_jobs=scripted_jobs))
        if not stack.enter_context(locked(app.store, watch_lock(source.name))):
            raise StoreError(
                f'another `tocsin watch` follows cluster "{source.name}" with this store; this one stops'
            )
        ledger, keep = stack.enter_context(open_history(app, source.name))
        policy = live_policy(app, simulated=demo)
        live = LiveJudge(app, ledger, cluster=source.name, stages=BITS, policy=policy)
        challengers = open_challengers(app, source.name)
        sinks = open_sinks(app)
        acting = Acting(app, source.actuator, sinks.subscriptions) if source.actuator else None
        beat = stack.enter_context(beating(app.home.cache, source.name))

        def stored(verdicts: "Sequence[Verdict]", now: int) -> None:
            observer.stored()
            if acting:
                acting.on_verdicts(verdicts, now)

        def finished(done: "Round") -> None:
            keep()
            for problem in acting.after_round(done.verdicts, done.at) if acting else ():
                app.notify(f"tocsin: {problem}")
            observer.finished(done)
            challengers.score()

        def waiting(pause: float, problem: str | None) -> None:
            beat(pause, problem)
            observer.waiting(pause, problem)

        loop = Loop(
            app=app,
            rounds=source.rounds(live.judge, ledger, sinks.subscriptions, challengers, stored),
            live=live,
            output=output,
            sinks=sinks,
            finished=finished,
            waiting=waiting,
        )
        observer.began(Followed.of(source, ledger))
        app.notify(f"watching {source.name}; {mode_text(app)}")
        # there is nothing to learn from simulated jobs or from a single pass
        loop.run(source.clock, stop, interval=source.interval, once=once, retrain=not demo and not once)
