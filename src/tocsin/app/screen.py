"""`screen`: classify the store's new jobs by their scripts, and check them against the allow-list."""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.judge import LiveJudge
from tocsin.app.loop import Loop, Output, WallClock, stop_on_signals
from tocsin.app.sinks import open_sinks
from tocsin.app.text import count
from tocsin.core.decision import Screened
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict, worst
from tocsin.judge.later_script import repeated_with_script

if TYPE_CHECKING:
    from tocsin.core.detector import Known
    from tocsin.judge.judge import Judge
    from tocsin.store.database import Store
    from tocsin.store.outbox import Subscriptions
    from tocsin.watch.watcher import Round

__all__ = ["screen"]

CHUNK = 500
_SCRIPT_ONLY = "screen reads only the script; tocsin watch looks at the request, too"


def screen(app: App, output: Output, *, every: float | None = None) -> None:
    """Screen new jobs; with `every`, again after that many seconds, until stopped by a signal."""
    from tocsin.store.locks import locked
    from tocsin.store.screenings import number_unscreened

    with locked(app.store, "screen") as alone:
        if not alone:
            app.notify("another `tocsin screen` is working on this store; this one exits")
            return
        known = _scripts_only(app)
        live = LiveJudge(app, known, ["workload"])
        _require_model(live.judge)
        sinks = open_sinks(app)
        done = rogue = total = 0

        def summarize(last: "Round") -> None:
            nonlocal done, rogue, total
            done += last.handled
            if last.behind and not total:
                total = done + number_unscreened(app.store, now=last.at)
            app.progress("screening", done, max(total, done))
            rogue += sum(bool(verdict.rogue and verdict.rogue.rogue) for verdict in last.verdicts)
            if not last.behind:
                if done or every is None:
                    app.notify(f"{count(done, 'job')} screened, {rogue:,} rogue")
                done = rogue = total = 0

        loop = Loop(
            app=app,
            rounds=_Screening(
                app.store, live.judge, known, sinks.subscriptions, everything=output.everything
            ),
            live=live,
            output=output,
            sinks=sinks,
            finished=summarize,
        )
        with stop_on_signals() as stop:
            loop.run(WallClock(), stop, interval=every or 0, once=every is None, retrain=True)


def _require_model(judge: "Judge") -> None:
    workload = judge.detectors.get("workload")
    if workload is None or Stage.SUBMIT not in workload.models:
        why = workload.missing.get(Stage.SUBMIT) if workload else "the detector is not installed"
        raise ModelError(f"nothing can be screened: {why}; see: tocsin models list workload")


def _scripts_only(app: App) -> "Known":
    """Uses scripts and no history: what a job is does not depend on other jobs."""
    import polars as pl

    from tocsin.core.frames import SCHEMA
    from tocsin.history.replay import Replay
    from tocsin.store.scriptfiles import read_script

    def script(digest: str) -> str | None:
        with suppress(NotFound):
            return read_script(app.home.scripts, digest)
        return None

    return Replay(pl.DataFrame(schema=SCHEMA), scripts=script)


def _added(given: Verdict | None, screened: Verdict) -> Verdict | None:
    """The verdict to give on a screened job, if any.

    A verdict that could not read the script is repeated with what the script adds, and only if that is a finding.
    """
    if given is not None:
        return repeated_with_script(given, screened)
    missing = {**screened.missing, **dict.fromkeys(("failure", "limits"), _SCRIPT_ONLY)}
    return replace(screened, level=worst([screened.level, Level.UNKNOWN]), missing=missing)


class _Screening:
    """Takes the oldest jobs not yet screened, one chunk per round."""

    def __init__(
        self, store: "Store", judge: "Judge", known: "Known", sinks: "Subscriptions", *, everything: bool
    ) -> None:
        self._store, self._judge, self._known, self._sinks = store, judge, known, sinks
        self._everything = everything

    def step(self, now: int) -> "Round":
        import polars as pl

        from tocsin.core.fields import KEY
        from tocsin.core.frames import SCHEMA, key_text
        from tocsin.store import screenings, watching
        from tocsin.store.decisions import record
        from tocsin.store.tables import NO_TASK
        from tocsin.store.verdicts import last_at_stage
        from tocsin.watch.watcher import Round

        _require_model(self._judge)
        keys = screenings.unscreened(self._store, CHUNK, now=now)
        if not keys:
            return Round(at=now, cost=0)
        frame = pl.DataFrame(keys, schema={name: SCHEMA[name] for name in KEY})
        frame = frame.with_columns(pl.col("task").replace(NO_TASK, None))
        jobs = watching.jobs_named(self._store, frame).sort("submit", "job_id", "task", nulls_last=False)
        earlier = last_at_stage(self._store, jobs.select(key_text()).to_series().to_list(), Stage.SUBMIT)
        decision = self._judge.decide(jobs, Stage.SUBMIT, known=self._known, at=now)
        found = {
            verdict.job for verdict in decision.verdicts if verdict.workload and verdict.workload.submission
        }
        # A script that could not be read is not tried again.
        unread = [
            Screened(job, cluster, user or "", submit, {})
            for job, cluster, user, submit in jobs.select(key_text(), "cluster", "user", "submit").iter_rows()
            if job not in found
        ]
        verdicts = [
            added
            for verdict in decision.verdicts
            if verdict.job in found and (added := _added(earlier.get(verdict.job), verdict))
        ]
        decision = replace(decision, verdicts=verdicts, screenings=[*decision.screenings, *unread])
        stored = record(self._store, decision, self._sinks)
        # `screen` reads only the script, as everybody expects: no line for that.
        shown = [verdict for verdict in stored if self._everything or verdict.level is not Level.UNKNOWN]
        return Round(at=now, handled=jobs.height, cost=0, verdicts=shown, behind=jobs.height == CHUNK)
