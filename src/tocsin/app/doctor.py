"""`doctor`: check settings, home, store, libraries and Slurm, and say how to fix what is missing."""

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import WITHOUT_REST, slurm_confs
from tocsin.app.doctor_finding import Finding, Status
from tocsin.app.doctor_slurm import rest_links, slurm_links
from tocsin.app.heartbeat import read_heartbeats, watch_lock
from tocsin.app.judge import untrained
from tocsin.app.sinks import check_sinks
from tocsin.core.errors import TocsinError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Finding", "Status", "doctor"]


LEAST_FREE = 1 << 30
FULL = 50 << 20
"""Bytes free below which the store may soon take no more verdicts."""
LONGEST_ROUND = 120  # seconds after which a verdict would be late


def doctor(app: App) -> Iterator[Finding]:
    """All findings, from settings to Slurm; one failure does not hide the next."""
    try:
        _, lines = app.resolved
    except TocsinError as error:
        yield Finding("settings", Status.BROKEN, str(error), "correct the file or variable named here")
        return
    yield Finding(
        "settings",
        Status.FINE,
        f"{sum(line.origin != 'default' for line in lines)} set, the rest at defaults",
    )
    for check, fix in _CHECKS.items():
        yield from _guarded(check.__name__.strip("_"), check, app, fix)
    confs = slurm_confs(app)
    for conf in confs:
        named = f" of {conf}" if conf and len(confs) > 1 else ""
        yield from _guarded(f"slurm{named}", partial(slurm_links, conf, named), app, _SLURM)
    for name, cluster in app.settings.cluster.items():
        if cluster.rest_url:
            yield from _guarded(f"rest {name}", partial(rest_links, name, cluster), app, WITHOUT_REST)


def _guarded(link: str, check: Callable[[App], Iterator[Finding]], app: App, fix: str) -> Iterator[Finding]:
    try:
        yield from check(app)
    except TocsinError as error:
        yield Finding(link, Status.BROKEN, str(error), fix)
    except OSError as error:
        yield Finding(link, Status.BROKEN, f"{error.strerror}: {error.filename}", fix)


def _home(app: App) -> Iterator[Finding]:
    folder = app.home.prepare().root
    free = shutil.disk_usage(folder).free
    text = f"{folder} with {free >> 30 or free >> 20:,} {'GiB' if free >> 30 else 'MiB'} free"
    if free < LEAST_FREE:
        status = Status.BROKEN if free < FULL else Status.NOTE
        yield Finding("home", status, text, "make room, or move it with TOCSIN_HOME")
    else:
        yield Finding("home", Status.FINE, text)


def _store(app: App) -> Iterator[Finding]:
    from tocsin.store.jobs import number_of_jobs

    yield Finding("store", Status.FINE, f"{app.store.place}, {number_of_jobs(app.store):,} jobs")


def _models(app: App) -> Iterator[Finding]:
    """Whether verdicts at submission can be ok, which requires every detector."""
    from tocsin.judge.plugins import find_detectors

    for name, detector in find_detectors().items():
        if detector.learns and Stage.SUBMIT in detector.stages:
            known = any(app.registry.champion(name, Stage.SUBMIT, c) for c in (None, *app.settings.cluster))
            if known:
                yield Finding(f"model {name}", Status.FINE, "in use at submission")
            else:
                text = "none for submission: verdicts are unknown unless something else is found"
                yield Finding(
                    f"model {name}", Status.NOTE, text, untrained(name, Stage.SUBMIT, app.registry.folder)
                )


def _learning(app: App) -> Iterator[Finding]:
    """The result of the last nightly run."""
    from tocsin.core.units import format_instant
    from tocsin.store.learning_runs import RunState, last_runs

    runs = last_runs(app.store, 1)
    if not runs:
        fix = "leave `tocsin serve` running at night, or run: tocsin nightly"
        yield Finding("learning", Status.ABSENT, "no model has been retrained yet", fix)
    for run in runs:
        text = f"retraining started {format_instant(run.started)} by {run.who}: {run.state}"
        if run.state in (RunState.FAILED, RunState.INTERRUPTED):
            fix = "see why with: tocsin nightly"
            why = f" ({run.error})" if run.error else ""
            yield Finding("learning", Status.NOTE, text + why, fix)
        else:
            yield Finding("learning", Status.FINE, text)


def _watch(app: App) -> Iterator[Finding]:
    """When each `watch` of this home last read its cluster."""
    from tocsin.store.locks import locked

    beats = list(read_heartbeats(app.home.cache))
    if not beats:
        yield Finding("watch", Status.ABSENT, "no cluster is followed", "run: tocsin watch")
    for beat in beats:
        with locked(app.store, watch_lock(beat.cluster)) as free:
            running = not free
        now = time.time()
        last = "never read" if beat.last is None else f"last read {now - beat.last:.0f} s ago"
        start = f"run: {beat.command}"
        if not running:
            status = Status.NOTE if beat.ended else Status.BROKEN
            text = f"{'stopped' if beat.ended else 'was killed'}; {last}"
        elif beat.problem:
            status, text, start = Status.BROKEN, f"{last}: {beat.problem}", "it keeps trying"
        elif now > beat.due + LONGEST_ROUND:
            status, text, start = Status.BROKEN, f"hangs; {last}", "stop it and start it again"
        else:
            status, text, start = Status.FINE, last, ""
        yield Finding(f"watch {beat.cluster}", status, text, start)


def _events(app: App) -> Iterator[Finding]:
    """Job events in Kafka that could not be read."""
    from tocsin.sources.kafka_access import client_properties, require_library
    from tocsin.store.watching import rejected_events

    for name in [name for name, cluster in app.settings.cluster.items() if cluster.kafka_topic]:
        require_library()
        client_properties(app.settings.kafka)
        if rejected := rejected_events(app.store, name):
            text = ", ".join(f"{number:,} {reason}" for reason, number in sorted(rejected.items()))
            fix = "send records in the format of docs/streams.md to this topic"
            yield Finding(f"events {name}", Status.NOTE, f"skipped because they cannot be read: {text}", fix)
        else:
            yield Finding(f"events {name}", Status.FINE, "all could be read")


def _sinks(app: App) -> Iterator[Finding]:
    """Delivery of messages by each sink."""
    from tocsin.store.outbox import states

    check_sinks(app)
    for name, state in states(app.store, app.settings.sinks).items():
        text = f"{state.sent:,} sent, {state.waiting:,} waiting"
        lost = [
            f"{number:,} {what}"
            for what, number in (("dropped", state.dropped), ("refused", state.refused))
            if number
        ]
        if lost:
            text += f", {', '.join(lost)}"
        if state.problem:
            minutes = (time.time() - state.since) / 60
            fix = f"messages wait in the store, up to {app.settings.sinks[name].most_waiting:,}; it keeps trying"
            yield Finding(
                f"sink {name}", Status.BROKEN, f"{text}; for {minutes:.0f} min: {state.problem}", fix
            )
        elif lost:
            yield Finding(f"sink {name}", Status.NOTE, text, "messages were lost; see docs/streams.md")
        else:
            yield Finding(f"sink {name}", Status.FINE, text)


def _libraries(_: App) -> Iterator[Finding]:
    from ctypes import CDLL

    try:
        CDLL("libgomp.so.1")
        yield Finding("libgomp", Status.FINE, "found; LightGBM can train")
    except OSError:
        yield Finding("libgomp", Status.BROKEN, "not found; LightGBM cannot load", "apt-get install libgomp1")
    yield Finding("sqlite", Status.FINE, sqlite3.sqlite_version)


_SLURM = "run `scontrol ping` and `sacctmgr ping` on this host"
_STORE = "check store.url, the disk and the owner of the home folder"
_CHECKS: "Mapping[Callable[[App], Iterator[Finding]], str]" = {
    _home: "give this user the folder, or move it with TOCSIN_HOME",
    _store: _STORE,
    _models: "run: tocsin models verify",
    _learning: _STORE,
    _watch: _STORE,
    _events: "correct [kafka] and kafka_topic in the settings; the client is in the extra: pip install 'tocsin[kafka]'",
    _sinks: "correct [sinks.NAME] in the settings",
    _libraries: "install tocsin again",
}
"""What is checked before Slurm, and the next step if the check itself fails."""
