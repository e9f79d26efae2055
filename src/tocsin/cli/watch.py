"""`tocsin watch`: follow a live cluster, or the demo's, and say what is wrong as it happens."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tocsin.cli import options
from tocsin.cli.judging import champions, seated_judge, verdict_log
from tocsin.cli.lines import Lines
from tocsin.cli.output import say
from tocsin.cli.settings import Context
from tocsin.core.errors import ClusterError, InputError, StoreError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.ports import Clock, Cluster
    from tocsin.demo.cluster import DemoCluster
    from tocsin.history.ledger import Ledger
    from tocsin.store.database import Store
    from tocsin.watch.watcher import Round

__all__ = ["watch"]

SAVE_EVERY = 3600


@click.command()
@options.cluster
@click.option("--demo", is_flag=True, help="Follow the demo cluster: no Slurm is needed.")
@click.option(
    "--speed",
    type=click.FloatRange(min=1, max=100_000),
    default=60.0,
    show_default=True,
    metavar="N",
    help="Of the demo: so many of its seconds in one of ours.",
)
@click.option("--once", is_flag=True, help="Look once, catch up, and end.")
@click.option("-a", "--all", "everything", is_flag=True, help="Print verdicts that are ok too.")
@options.as_json
@click.pass_obj
def watch(
    context: Context,
    cluster: str | None,
    demo: bool,
    speed: float,
    once: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Follow a cluster and give verdicts.

    One line for each verdict that is not ok, one for all tasks of an array, and every verdict in the store, once. It
    only watches: no job is held or changed. It may be stopped and killed at any time; what it missed is caught up with at the next start.
    """
    from tocsin.cli.retraining import Retraining
    from tocsin.watch.loop import Stop, run
    from tocsin.watch.scripts import Scripts
    from tocsin.watch.watcher import Watcher

    if demo and cluster not in (None, "demo"):
        raise InputError(f'the demo\'s cluster is "demo", not "{cluster}"; leave one of -M and --demo out')
    settings = context.settings.watch
    folder = context.folder.prepare().scripts
    with ExitStack() as stack:
        store = stack.enter_context(context.store())
        stop = stack.enter_context(Stop())
        stack.enter_context(stop.on_signals(signal.SIGTERM, signal.SIGINT))
        followed, clock = stack.enter_context(_demo(store, speed) if demo else _live(context, cluster))
        ledger, keep = stack.enter_context(_ledger(context, store, followed.name))
        scripts = Scripts(followed, folder) if settings.scripts or demo else None
        judge, seated = seated_judge(context, store, ledger), champions(context)
        watcher = Watcher(followed, store, judge, ledger, scripts=scripts)
        # made up jobs, and those of a single look, are nothing to learn from
        retraining = None if demo or once else stack.enter_context(Retraining(context, store))

        log = verdict_log(context)
        if log:
            stack.enter_context(log)
        lines = Lines(store, everything=everything, as_json=as_json)

        def tell(done: "Round") -> None:
            nonlocal seated
            if retraining and (sentence := retraining.look()):
                say(sentence)
            if (now := champions(context)) != seated:
                judge.detectors, seated = seated_judge(context, store, ledger).detectors, now
                say("other models are in service, and heard from now on")
            if log and (trouble := log.write(done.verdicts)):
                _complain(trouble)
            lines.add(done.verdicts)
            lines.end()
            keep()

        say(f"watching {followed.name}; nothing is held or changed")
        interval = max(settings.interval, 1) / (speed if demo else 1)
        run(watcher, clock, stop, interval=interval, tell=tell, say=_complain, once=once)


def _complain(sentence: str) -> None:
    say(f"tocsin: {sentence}")


@dataclass(frozen=True, slots=True)
class _Wall:
    def now(self) -> float:
        return time.time()


@dataclass(frozen=True, slots=True)
class _Hurried:
    """The demo's clock, driven by ours."""

    cluster: "DemoCluster"
    speed: float
    begun: float
    at: float

    def now(self) -> float:
        self.cluster.clock.advance_to(self.at + (time.monotonic() - self.begun) * self.speed)
        return self.cluster.clock.now()


@contextmanager
def _demo(store: "Store", speed: float) -> "Iterator[tuple[Cluster, Clock]]":
    """The demo cluster at the instant up to which the store knows it."""
    from tocsin.demo.cluster import START, DemoCluster
    from tocsin.store.importing import furthest_position
    from tocsin.store.jobs import Filter, load

    cluster = DemoCluster()
    last = load(store, Filter(clusters=[cluster.name], order="-submit", limit=1), ["submit"])["submit"]
    at = max(START + 8 * 3600, furthest_position(store, f"watch:{cluster.name}") or 0, *last)
    cluster.clock.advance_to(at)
    yield cluster, _Hurried(cluster, speed, time.monotonic(), at)


@contextmanager
def _live(context: Context, name: str | None) -> "Iterator[tuple[Cluster, Clock]]":
    """The cluster to follow. Its name is part of every key, so it must be known and not be guessed."""
    from tocsin.cli.clusters import cluster_named, live_cluster

    named, settings = cluster_named(context, name)
    if named is None:
        from tocsin.sources.commands import run
        from tocsin.sources.slurm_machine import read_config

        config = read_config(
            run(["scontrol", "show", "config"], timeout=settings.timeout).decode("utf-8", "replace")
        )
        named = config.get("ClusterName")
        if not named:
            raise ClusterError("Slurm does not tell the name of its cluster; give it with -M")
    cluster = live_cluster(context, named)
    with cluster.rest or nullcontext():
        yield cluster, _Wall()


@contextmanager
def _ledger(context: Context, store: "Store", cluster: str) -> "Iterator[tuple[Ledger, Callable[[], None]]]":
    """What was known so far, from the cache or the store; it is kept in the cache now and then, and at the end."""
    from tocsin.history.snapshot import open_ledger, save_ledger
    from tocsin.store import watching

    folder = context.folder.cache / "history" / cluster
    folder.mkdir(parents=True, exist_ok=True)
    saved = time.monotonic()

    def fingerprint(until: int) -> str:
        return watching.fingerprint(store, cluster, until)

    def keep() -> None:
        nonlocal saved
        if time.monotonic() - saved >= SAVE_EVERY:
            save_ledger(folder, ledger, fingerprint)
            saved = time.monotonic()

    ledger = open_ledger(folder, lambda since: _past_jobs(store, cluster, since), fingerprint)
    try:
        yield ledger, keep
    finally:
        with suppress(StoreError, OSError):  # it is a cache: the next start makes it anew
            save_ledger(folder, ledger, fingerprint)


def _past_jobs(store: "Store", cluster: str, since: int) -> "pl.DataFrame":
    """Those alive at this instant or later; not arrays that wait, whose tasks count as they start."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    jobs = load(store, Filter(clusters=[cluster], since=since or None))
    return jobs.filter(pl.col("array").is_null() | pl.col("outcome").is_not_null())
