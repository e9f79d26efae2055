"""`tocsin screen`: the periodic mode, what the store's new jobs are and whether they may be that."""

import fcntl
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tocsin.cli import options
from tocsin.cli.judging import seated_judge, verdict_log
from tocsin.cli.lines import Lines
from tocsin.cli.output import count, say
from tocsin.cli.settings import Context
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict

if TYPE_CHECKING:
    from tocsin.cli.retraining import Retraining
    from tocsin.core.detector import Known
    from tocsin.judge.judge import Judge
    from tocsin.store.database import Store
    from tocsin.watch.loop import Stop

__all__ = ["screen"]

CHUNK = 500


@click.command()
@click.option("--every", type=click.FloatRange(min=1), metavar="SECONDS", help="Go on, a pass so often.")
@click.option("-a", "--all", "everything", is_flag=True, help="Print verdicts that are ok too.")
@options.as_json
@click.pass_obj
def screen(context: Context, every: float | None, everything: bool, as_json: bool) -> None:
    """Screen the jobs in the store that are new.

    Those that have a script and were not screened yet, by `tocsin watch` or by this command; each once, however often
    it is run. One line for each verdict that is not ok; the tasks of an array share one. What tells ended jobs by what
    they did is learned anew once a day (workload.beta_days). Exit code 0 when all that was new is screened.
    """
    from tocsin.cli.retraining import Retraining
    from tocsin.watch.loop import Stop

    with ExitStack() as stack:
        store = stack.enter_context(context.store())
        if not stack.enter_context(_alone(context.folder.prepare().cache)):
            say("another `tocsin screen` is at work on this store and screens what is new; this one ends")
            return
        stop = stack.enter_context(Stop())
        stack.enter_context(stop.on_signals(signal.SIGTERM, signal.SIGINT))
        log = verdict_log(context)
        if log:
            stack.enter_context(log)
        judge = _judge(context, store)
        lines = Lines(store, everything=everything, as_json=as_json)
        stack.callback(lines.end)
        retraining = stack.enter_context(Retraining(context, store))
        while True:
            done = rogue = 0
            while not stop.wait(0):
                verdicts, taken = _pass(context, store, judge)
                done += taken
                rogue += sum(bool(verdict.rogue and verdict.rogue.rogue) for verdict in verdicts)
                lines.add(verdicts)
                if log and (trouble := log.write(verdicts)):
                    say(f"tocsin: {trouble}")
                if taken < CHUNK:
                    break
            lines.end()
            if done or every is None:
                say(f"{count(done, 'job')} screened, {rogue:,} rogue")
            _retrain(retraining, stop, patient=every is None)
            if every is None or stop.wait(every):
                return


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether no other process is screening: two would tell each job twice."""
    with (folder / "screen.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _retrain(retraining: "Retraining", stop: "Stop", *, patient: bool) -> None:
    """After the screenings, which are its labels; the patient wait for its end."""
    sentence = retraining.look()
    while patient and retraining.runs and not stop.wait(0.1):
        sentence = retraining.look()
    if sentence:
        say(sentence)


def _judge(context: Context, store: "Store") -> "Judge":
    """The judge with the workload detector alone."""
    judge = seated_judge(context, store, _past(context), only=["workload"])
    seat = judge.detectors.get("workload")
    if seat is None or Stage.SUBMIT not in seat.models:
        why = seat.missing.get(Stage.SUBMIT) if seat else "the detector is not installed"
        raise ModelError(f"nothing can be screened: {why}; see: tocsin models list workload")
    return judge


def _past(context: Context) -> "Known":
    """Nothing but scripts: what a job is does not depend on others."""
    import polars as pl

    from tocsin.core.frames import SCHEMA
    from tocsin.history.replay import Replay
    from tocsin.store.scriptfiles import read_script

    def script(digest: str) -> str | None:
        with suppress(NotFound):
            return read_script(context.folder.scripts, digest)
        return None

    return Replay(pl.DataFrame(schema=SCHEMA), scripts=script)


def _pass(context: Context, store: "Store", judge: "Judge") -> tuple[list[Verdict], int]:
    """The verdicts on the oldest jobs that were not screened, and how many jobs those were."""
    import polars as pl

    from tocsin.core.fields import KEY
    from tocsin.core.frames import SCHEMA, key_text
    from tocsin.store import screenings, watching
    from tocsin.store.tables import NO_TASK

    keys = screenings.unscreened(store, CHUNK)
    if not keys:
        return [], 0
    frame = pl.DataFrame(keys, schema={name: SCHEMA[name] for name in KEY})
    frame = frame.with_columns(pl.col("task").replace(NO_TASK, None))
    jobs = watching.jobs_named(store, frame).sort("submit", "job_id", "task", nulls_last=False)
    now = int(time.time())
    verdicts = judge.assess(jobs, Stage.SUBMIT, past=_past(context), at=now)
    # What could not be read is not asked for again.
    known = {verdict.job for verdict in verdicts if verdict.workload and verdict.workload.submission}
    unread = jobs.with_columns(key_text()).filter(~pl.col("job").is_in(list(known)))
    screenings.remember(
        store,
        [
            screenings.Screened(job, cluster, user or "", submit, {})
            for job, cluster, user, submit in unread.select("job", "cluster", "user", "submit").iter_rows()
        ],
    )
    return _stored(store, [verdict for verdict in verdicts if verdict.job in known]), jobs.height


def _stored(store: "Store", verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts as they were stored: each follows those that the job has, and takes no watcher's place."""
    from tocsin.store.verdicts import StoredVerdict, of_job, record

    found = []
    for verdict in verdicts:
        key: JobKey = parse_key(verdict.job)
        before = [one.seq for one in of_job(store, key) if one.stage is Stage.SUBMIT]
        found.append(replace(verdict, seq=max(before, default=0) + 1))
    record(
        store,
        [
            StoredVerdict(
                job=parse_key(v.job),
                stage=v.stage,
                seq=v.seq,
                at=v.at,
                level=str(v.level),
                document=v.to_json(),
            )
            for v in found
        ],
    )
    return found
