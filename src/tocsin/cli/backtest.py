"""`tocsin backtest`: what a failure model would have been worth, week by week, before anybody trusts it."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from tocsin.cli import options
from tocsin.cli.logs import log_options, read_jobs
from tocsin.cli.output import Column, count, print_json, print_table, say
from tocsin.cli.settings import Context
from tocsin.core.errors import InputError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.learn.audit import Audit
    from tocsin.learn.report import Report
    from tocsin.learn.walk import Walked

__all__ = ["backtest", "rule_of", "stages", "targets", "threads"]

_MOST_DAYS = 100_000

targets = click.option(
    "--target",
    type=click.Choice([str(target) for target in Target]),
    help="What counts as failure [default: unsuccessful for SWF, failed for Slurm].",
)
stages = click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in (Stage.SUBMIT, Stage.START, Stage.EARLY)]),
    default="submit",
    show_default=True,
    help="When in a job's life it is asked about.",
)


def _days(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:  # noqa: ARG001  # click hands them in
    if value is not None and not value <= _MOST_DAYS:  # nan, too
        raise click.BadParameter(f"{value:g} is no number of days up to {_MOST_DAYS:,}")
    return value


def threads() -> int:
    """Cores that a training may use; more than four gain little."""
    return min(4, len(os.sched_getaffinity(0)))


@click.command()
@log_options
@stages
@targets
@click.option("--train-days", type=click.FloatRange(min=0, min_open=True), metavar="N", callback=_days,
              help="Train on the jobs of the last N days [default: all that is known].")  # fmt: skip
@click.option("--every-days", type=click.FloatRange(min=0.01), default=7.0, show_default=True, metavar="N", callback=_days,
              help="Train anew every N days.")  # fmt: skip
@click.option("--trials", type=click.IntRange(min=1), default=4, show_default=True, metavar="N",
              help="Trials of each search.")  # fmt: skip
@click.option("--rule", metavar="KIND=VALUE", help="Rule for the threshold, as in `tocsin threshold`.")
@click.option("--predictions", metavar="FILE", help="Write one line of JSON for each job here.")
@click.option("--audit", "audited", is_flag=True, help="Prove that nothing later moves a prediction.")
@options.as_json
@click.pass_obj
def backtest(
    context: Context,
    log: str | None,
    use_store: bool,
    cluster: str | None,
    tz: str | None,
    mapping: str | None,
    columns: str | None,
    stage: str,
    target: str | None,
    train_days: float | None,
    every_days: float,
    trials: int,
    rule: str | None,
    predictions: str | None,
    audited: bool,
    as_json: bool,
) -> None:
    """Walk through a LOG, or through the store, as time went by.

    Train on what was known, predict the next days, move on. The first prediction comes after a fifth of the jobs; from
    there on every job is predicted exactly once.
    """
    chosen = {"rule": rule_of(rule)} if rule else {}
    jobs = read_jobs(
        context, log, use_store, cluster=cluster, tz=tz, mapping=mapping, columns=columns, quiet=as_json
    )
    from tocsin.core.detector import Budget
    from tocsin.failure.detector import FailureDetector
    from tocsin.failure.labels import default_target
    from tocsin.history.replay import Replay
    from tocsin.learn.audit import audit
    from tocsin.learn.report import report
    from tocsin.learn.walk import Walk, WalkRequest

    found = sorted(jobs["cluster"].unique())
    if len(found) > 1:
        raise InputError(f"there are jobs of {len(found)} clusters: {', '.join(found)}; name one with -M")
    request = WalkRequest(
        stage=Stage(stage), every_days=every_days, train_days=train_days, budget=Budget(trials=trials)
    )
    detector = FailureDetector(
        target=Target(target) if target else default_target(jobs),
        zone=options.zone_of(context, cluster or found[0], tz).key,
        threads=threads(),
        **chosen,
    )
    assert detector.target is not None, "chosen above"
    walk = Walk(jobs, Replay(jobs), detector, request)
    walked: list[Walked] = []
    with ExitStack() as stack:
        out = stack.enter_context(_lines(predictions)) if predictions else None
        advance = stack.enter_context(_bar("walking", len(walk.steps), as_json))
        for step in walk:
            walked.append(step)
            if out is not None:
                out.writelines(_predictions(step))
            advance(len(walked), len(walk.steps))
    told = report(walked, detector.target)
    proof = None
    if audited:
        with _bar("auditing", len(walk.steps), as_json) as advance:
            proof = audit(jobs, walked, detector, request, Replay, progress=advance)
    if as_json:
        print_json(_document(told, walked, stage, every_days, train_days, proof))
    else:
        _print(told, walked, stage, every_days, train_days)
        if proof is not None:
            _print_proof(proof)
    if proof is not None and not proof.clean:
        raise SystemExit(1)


def rule_of(text: str) -> Any:
    """A rule as the line names it: precision_at_least=0.9."""
    from tocsin.models.thresholds import RULES, Rule

    kind, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        raise click.UsageError(
            f'"{text}" is no rule; name one as KIND=VALUE, such as precision_at_least=0.9 (kinds: {", ".join(RULES)})'
        ) from None
    return Rule(kind.replace("-", "_"), number)


@contextmanager
def _lines(path: str) -> Iterator[IO[str]]:
    """The file of predictions; what cannot be written is said before the walk, not after it."""
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            yield out
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; name another file") from None


@contextmanager
def _bar(label: str, length: int, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    if quiet or not sys.stderr.isatty():
        yield lambda done, of: None  # noqa: ARG005  # nobody looks
        return
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:

        def advance(done: int, of: int) -> None:
            bar.length = of
            bar.update(done - bar.pos)

        yield advance


def _predictions(step: "Walked") -> Iterator[str]:
    from tocsin.core.frames import key_text

    rows = step.jobs.select(key_text(), "submit", "outcome").iter_rows()
    for (job, submit, outcome), p in zip(rows, step.probability.tolist(), strict=True):
        line = {"job": job, "submit": format_instant(submit), "probability": p, "outcome": outcome}
        yield json.dumps(line) + "\n"


def _split(every_days: float, train_days: float | None) -> str:
    known = "all that was known" if train_days is None else f"the known jobs of the last {train_days:g} days"
    span = "day" if every_days == 1 else f"{every_days:g} days"
    return f"trained on {known}, every {span} the next {span} predicted"


def _document(
    told: "Report",
    walked: "list[Walked]",
    stage: str,
    every_days: float,
    train_days: float | None,
    proof: "Audit | None",
) -> dict[str, Any]:
    found = {"stage": stage, "split": _split(every_days, train_days), **told.to_json()}
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


def _refused(walked: "list[Walked]") -> str | None:
    """Why there was no model, where there was none last."""
    return next((each.refused for each in reversed(walked) if each.refused), None)


def _print(
    told: "Report", walked: "list[Walked]", stage: str, every_days: float, train_days: float | None
) -> None:
    echo = click.echo
    echo(
        f"{count(told.predicted, 'job')} predicted at {stage}, target {told.target}, {told.judged:,} with an outcome for it"
    )
    echo(f"{_split(every_days, train_days)}, from {format_instant(walked[0].step.cut)} on")
    echo(f"{count(told.trainings, 'training')}, {told.searches} with a search")
    if refused := _refused(walked):
        say(f"note: {count(told.without_model, 'step')} had no model and told the share so far: {refused}")
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
        f"  holding at the threshold: {count(told.alarms, 'alarm')}, {told.saved:,.0f} node-hours saved, "
        f"{told.delayed:,.0f} of good jobs delayed, {told.wasted:,.0f} still wasted"
    )
    echo("")
    rows = [
        dict(zip(month.__slots__, [getattr(month, name) for name in month.__slots__], strict=True))
        for month in told.months
    ]
    print_table(rows, _COLUMNS, header=True, parsable=False)


def _share(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda row: "" if row[name] is None else f"{row[name]:.3f}"


_COLUMNS = [
    Column("Month", lambda row: row["month"], -7),
    Column("Jobs", lambda row: f"{row['jobs']:,}", 8),
    Column("Failing", _share("failing"), 7),
    Column("Alarms", lambda row: f"{row['alarms']:,}", 7),
    Column("Precision", _share("precision"), 9),
    Column("Recall", _share("recall"), 7),
    Column("AUC", _share("auc"), 6),
    Column("AP", _share("average_precision"), 6),
    Column("Runtime", _share("covered"), 7),
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
