"""`traces watch`: read new traces repeatedly, and give verdicts on running jobs whose traces raise an alarm."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import live_cluster
from tocsin.app.heartbeat import beating, traces_of, watch_lock
from tocsin.app.judge import LiveJudge, needs
from tocsin.app.loop import Loop, Output, WallClock, stop_on_signals
from tocsin.app.sinks import open_sinks
from tocsin.app.traces_import import TraceImporter, TracesImport
from tocsin.core.errors import SourceError, StoreError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.frames import Samples
    from tocsin.judge.judge import Judge
    from tocsin.store.outbox import Subscriptions
    from tocsin.traces.fitted import FittedTraces
    from tocsin.watch.trace_rounds import TraceRounds

__all__ = ["TraceWatchRequest", "watch_traces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWatchRequest:
    cluster: str | None = None
    every: float = 10.0
    """Seconds between two readings."""
    once: bool = False
    """Catch up, then end."""


def watch_traces(app: App, request: TraceWatchRequest, output: Output) -> None:
    """Follow the traces of a cluster until stopped by a signal. It may run beside `tocsin watch`."""
    from tocsin.history.ledger import Ledger
    from tocsin.store.locks import locked

    app.home.prepare()
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        importer = stack.enter_context(TraceImporter(app, TracesImport(cluster=request.cluster)))
        name = importer.cluster
        if not stack.enter_context(locked(app.store, watch_lock(traces_of(name)))):
            raise StoreError(
                f'another `tocsin traces watch` follows cluster "{name}" with this store; this one stops'
            )
        cluster = stack.enter_context(live_cluster(app, name))
        live, sinks = LiveJudge(app, Ledger(), cluster=name, stages=[Stage.RUNNING]), open_sinks(app)
        rounds = _rounds(app, importer, live.judge, cluster.queue, sinks.subscriptions)
        stack.callback(_report, app, rounds)
        loop = Loop(
            app=app,
            rounds=rounds,
            live=live,
            output=output,
            sinks=sinks,
            finished=lambda done: None,  # noqa: ARG005  # what was done is in the store
            waiting=stack.enter_context(beating(app.home.cache, traces_of(name))),
        )
        app.notify(f"watching the traces of {name}; no job is held or changed")
        loop.run(WallClock(), stop, interval=request.every, once=request.once, retrain=False)


class _Reader:
    """The sources of the settings. One that does not answer is a problem; if none does, it is an error."""

    def __init__(self, importer: TraceImporter) -> None:
        self._sources = importer.sources
        self.problems: list[str] = []
        self.first_failed: int | None = None

    def __call__(self, since: int, until: int) -> "Iterator[Samples]":
        self.problems, self.first_failed = [], None
        answered = False
        for _, source in self._sources:
            noted = len(source.notes)
            source.first_failed = None
            try:
                for batch in source.batches(since, until):
                    answered = True
                    yield batch.samples
            except SourceError as error:
                self.problems.append(str(error))
                source.first_failed = since
            self.problems += source.notes[noted:]
            if source.first_failed is not None:
                self.first_failed = min(source.first_failed, self.first_failed or source.first_failed)
        if not answered and self.problems:
            raise SourceError(self.problems[0])


def _rounds(
    app: App,
    importer: TraceImporter,
    judge: "Judge",
    queue: "Callable[[], pl.DataFrame]",
    sinks: "Subscriptions",
) -> "TraceRounds":
    from tocsin.core.detector import Need
    from tocsin.store.jobs import Filter, load
    from tocsin.watch.trace_jobs import TraceJobs
    from tocsin.watch.trace_rounds import Spacing, TraceRounds

    name, settings = importer.cluster, app.settings.traces
    wanted = needs(app, Stage.RUNNING, name) & {Need.HISTORY, Need.OWN_HISTORY}
    return TraceRounds(
        name,
        _Reader(importer),
        importer.store,
        app.store,
        judge,
        lambda: _fitted(judge),
        jobs=TraceJobs(app.store, name, queue),
        spacing=Spacing(settings.window, settings.stride, settings.interval),
        sinks=sinks,
        past=load(app.store, Filter(clusters=[name])) if wanted else None,
    )


def _fitted(judge: "Judge") -> "FittedTraces | None":
    """The trace model in use, from whichever detector has one."""
    from tocsin.traces.fitted import FittedTraces

    models = (detector.models.get(Stage.RUNNING) for detector in judge.detectors.values())
    return next((m.fitted for m in models if m and isinstance(m.fitted, FittedTraces)), None)


def _report(app: App, rounds: "TraceRounds") -> None:
    """Report what was read, when the watch ends."""
    counts = rounds.counts
    dropped = "".join(f"; {number:,} {reason}" for reason, number in sorted(counts.dropped.items()))
    app.notify(f"read {counts.samples:,} new samples, scored {counts.windows:,} windows{dropped}")
