"""`tocsin backtest`: what a failure model would have been worth, week by week, before anybody trusts it."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.logs import LogRequest, one_cluster, read_jobs
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_table, progress_bar, say
from tocsin.core.errors import InputError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.learn.audit import Audit
    from tocsin.learn.report import Report
    from tocsin.learn.walk import StepResult, Walk, WalkRequest
    from tocsin.models.thresholds import ThresholdRule

__all__ = ["backtest", "threads"]

_MOST_DAYS = 100_000


def _days(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:  # noqa: ARG001  # click hands them in
    if value is not None and not value <= _MOST_DAYS:  # nan, too
        raise click.BadParameter(f"{value:g} is no number of days up to {_MOST_DAYS:,}")
    return value


def threads() -> int:
    """Cores that a training may use; more than four gain little."""
    return min(4, len(os.sched_getaffinity(0)))


@click.command()
@options.log_options()
@options.stage
@options.target
@click.option("--train-days", type=click.FloatRange(min=0, min_open=True), metavar="N", callback=_days,
              help="Train on the jobs of the last N days [default: all that is known].")  # fmt: skip
@click.option("--every-days", type=click.FloatRange(min=0.01), default=7.0, show_default=True, metavar="N", callback=_days,
              help="Train anew every N days.")  # fmt: skip
@click.option("--trials", type=click.IntRange(min=1), default=4, show_default=True, metavar="N",
              help="Trials of each search.")  # fmt: skip
@options.rule
@click.option("--predictions", metavar="FILE", help="Write one line of JSON for each job here.")
@click.option("--audit", "audited", is_flag=True, help="Prove that nothing later moves a prediction.")
@options.as_json
@click.pass_obj
def backtest(
    app: App,
    log: LogRequest,
    stage: Stage,
    target: Target | None,
    train_days: float | None,
    every_days: float,
    trials: int,
    rule: "ThresholdRule",
    predictions: str | None,
    audited: bool,
    as_json: bool,
) -> None:
    """Walk through a LOG, or through the app.store, as time went by.

    Train on what was known, predict the next days, move on. The first prediction comes after a fifth of the jobs; from
    there on every job is predicted exactly once.
    """
    jobs = read_jobs(app, log)
    from tocsin.core.detector import Budget
    from tocsin.failure.detector import FailureDetector
    from tocsin.failure.labels import default_target
    from tocsin.history.replay import Replay
    from tocsin.learn.audit import audit
    from tocsin.learn.report import report
    from tocsin.learn.walk import Walk, WalkRequest

    cluster = one_cluster(jobs)
    zone = app.zone(log.cluster or cluster, log.tz).key
    target = target or default_target(jobs)
    detector = FailureDetector(target=target, rule=rule, zone=zone, threads=threads())
    request = WalkRequest(
        stage=stage, every_days=every_days, train_days=train_days, budget=Budget(trials=trials)
    )
    walked = _walked(Walk(jobs, Replay(jobs), detector, request), predictions, quiet=as_json)
    told, proof = report(walked, target), None
    if audited:
        with progress_bar("auditing", len(walked), quiet=as_json) as advance:
            proof = audit(jobs, walked, detector, request, Replay, progress=advance)
    if as_json:
        print_json(_document(told, walked, request, rule, proof))
    else:
        _print(told, walked, request, rule)
        if proof is not None:
            _print_proof(proof)
    if proof is not None and not proof.clean:
        raise SystemExit(1)


def _walked(walk: "Walk", predictions: str | None, *, quiet: bool) -> "list[StepResult]":
    """All its steps, each written to the file of predictions as it is done."""
    walked: list[StepResult] = []
    with ExitStack() as stack:
        out = stack.enter_context(_lines(predictions)) if predictions else None
        advance = stack.enter_context(progress_bar("walking", len(walk.steps), quiet=quiet))
        for step in walk:
            walked.append(step)
            if out is not None:
                out.writelines(_predictions(step))
            advance(len(walked), len(walk.steps))
    return walked


@contextmanager
def _lines(path: str) -> Iterator[IO[str]]:
    """The file of predictions; what cannot be written is said before the walk, not after it."""
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            yield out
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; name another file") from None


def _predictions(step: "StepResult") -> Iterator[str]:
    from tocsin.core.frames import key_text

    rows = step.jobs.select(key_text(), "submit", "outcome").iter_rows()
    for (job, submit, outcome), p in zip(rows, step.probability.tolist(), strict=True):
        line = {"job": job, "submit": format_instant(submit), "probability": p, "outcome": outcome}
        yield json.dumps(line) + "\n"


def _split(request: "WalkRequest") -> str:
    days = request.train_days
    known = "all that was known" if days is None else f"the known jobs of the last {days:g} days"
    span = "day" if request.every_days == 1 else f"{request.every_days:g} days"
    return f"trained on {known}, every {span} the next {span} predicted"


def _document(
    told: "Report",
    walked: "list[StepResult]",
    request: "WalkRequest",
    rule: "ThresholdRule",
    proof: "Audit | None",
) -> dict[str, Any]:
    found = {"stage": request.stage, "split": _split(request), **told.to_json()}
    found["rule"] = asdict(rule)
    found["first"] = format_instant(walked[0].step.cut)
    found["refused"] = _refused(walked)
    if proof is not None:
        found["audit"] = {
            "until": format_instant(proof.until),
            "compared": proof.compared,
            "differing": proof.differing,
            "clean": proof.clean,
        }
    return found


def _refused(walked: "list[StepResult]") -> str | None:
    """Why there was no model, where there was none last."""
    return next((each.refused for each in reversed(walked) if each.refused), None)


def _print(told: "Report", walked: "list[StepResult]", request: "WalkRequest", rule: "ThresholdRule") -> None:
    echo = click.echo
    echo(
        f"{count(told.predicted, 'job')} predicted at {request.stage}, target {told.target}, "
        f"{told.judged:,} with an outcome for it"
    )
    echo(f"{_split(request)}, from {format_instant(walked[0].step.cut)} on")
    echo(f"{count(told.trainings, 'training')}, {told.searches} with a search; rings by the rule: {rule}")
    if refused := _refused(walked):
        say(
            f"note: {count(told.without_model, 'step')} had no model, told the share so far and rang for nothing: {refused}"
        )
    if told.unmet:
        say(f"note: no threshold met the rule in {told.unmet} of {count(told.trainings, 'training')}")
    echo("")
    for metric in told.figures:
        value = metric.reason if metric.value is None else f"{metric.value:.4f}"
        interval = "" if metric.low is None else f"  [{metric.low:.4f}, {metric.high:.4f}]"
        echo(f"  {metric.name:<20} {value}{interval}")
    echo("")
    held = told.runtime
    if held.completed is not None:
        echo(
            f"  run time: {held.completed:.1%} of {count(held.jobs, 'completed job')} kept to the bound for 95 %"
        )
    echo(
        f"  holding at the threshold: {count(told.alarms, 'alarm')}, {told.saved:,.0f} {told.hours} saved, "
        f"{told.delayed:,.0f} of good jobs delayed, {told.wasted:,.0f} still wasted"
    )
    echo("")
    print_table([asdict(month) for month in told.months], _COLUMNS, header=True, parsable=False)


_COLUMNS = [
    Column("Month", lambda row: row["month"], -7),
    Column("Jobs", number_of("jobs"), 8),
    Column("Failing", number_of("failing", 3), 7),
    Column("Alarms", number_of("alarms"), 7),
    Column("Precision", number_of("precision", 3), 9),
    Column("Recall", number_of("recall", 3), 7),
    Column("AUC", number_of("auc", 3), 6),
    Column("AP", number_of("average_precision", 3), 6),
    Column("Runtime", number_of("covered", 3), 7),
]


def _print_proof(proof: "Audit") -> None:
    until = format_instant(proof.until)
    if proof.clean:
        say(
            f"audit: with all changed that became known after {until}, {count(proof.compared, 'earlier prediction')} "
            "came out the same, bit by bit"
        )
    else:
        say(
            f"tocsin: the audit failed: with all changed that became known after {until}, {proof.differing:,} of "
            f"{proof.compared:,} earlier predictions differ, first of job {proof.example}; please report this"
        )
