"""`tocsin backtest`: how a failure model would have performed, before anybody relies on it."""

from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.backtest import BacktestRequest
from tocsin.app.backtest import backtest as walk
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, number_of, print_json, print_line, print_message, print_table

__all__ = ["backtest"]

_MOST_DAYS = 100_000


def _days(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:  # noqa: ARG001  # click hands them in
    if value is not None and not value <= _MOST_DAYS:  # nan, too
        raise click.BadParameter(f"{value:g} is not a number of days up to {_MOST_DAYS:,}")
    return value


@click.command()
@options.log_options()
@options.stage
@options.target
@options.engine
@options.shortest
@click.option("--train-days", type=click.FloatRange(min=0, min_open=True), metavar="N", callback=_days,
              help="Train on the jobs of the last N days [default: all that is known].")  # fmt: skip
@click.option("--every-days", type=click.FloatRange(min=0.01), default=7.0, show_default=True, metavar="N", callback=_days,
              help="Retrain every N days.")  # fmt: skip
@click.option("--trials", type=click.IntRange(min=1), default=4, show_default=True, metavar="N",
              help="Trials of each parameter search.")  # fmt: skip
@options.rule
@click.option("--predictions", metavar="FILE", help="Write one line of JSON for each job to FILE.")
@click.option("--audit", is_flag=True, help="Prove that no prediction depends on what became known later.")
@options.as_json
@click.pass_obj
@options.gathered(BacktestRequest, "request")
def backtest(app: App, request: BacktestRequest, as_json: bool) -> None:
    """Back-test failure prediction on a LOG, or on the store.

    Replays the jobs in order of time as the service does: the shipped model predicts the first ones; then a model is trained
    on what was known by then, used if it is no worse than the one before, and predicts the next days.
    """
    found = walk(app, request)
    audit = found.get("audit")
    if as_json:
        print_json(found)
    else:
        _print(found)
        if audit:
            _print_audit(audit)
    if audit and not audit["clean"]:
        raise SystemExit(1)


def _print(found: dict[str, Any]) -> None:
    rule = found["rule"]
    print_line(
        f"{count(found['predicted'], 'job')} predicted at {found['stage']}, target {found['target']}, "
        f"{found['judged']:,} of them with an outcome that counts"
    )
    print_line(f"failing: {', '.join(found['failing'])}; good: completed{_left_out(found['left_out'])}")
    print_line(f"{found['split']}, from {found['first']} on")
    print_line(
        f"{count(found['trainings'], 'training')}, {found['searches']} with a parameter search; "
        f"the model before stayed in use {found['kept']} times; "
        f"threshold rule {rule['kind']}={rule['value']:g}"
    )
    if found["too_short"]:
        print_message(f"left out: {count(found['too_short'], 'job')} that ran for less than --shortest")
    if found["refused"]:
        steps = count(found["without_model"], "step")
        by = "the shipped model" if found["shipped"] else "the share of failures so far"
        print_message(f"note: {steps} could train no model and predicted by {by}: {found['refused']}")
    if found["unmet"]:
        trainings = count(found["trainings"], "training")
        print_message(f"note: no threshold met the rule in {found['unmet']} of {trainings}")
    print_line()
    print_line("  figure               value   95 % interval")
    for figure in found["figures"]:
        value = figure["reason"] if figure["value"] is None else f"{figure['value']:.4f}"
        interval = "" if figure["low"] is None else f"  [{figure['low']:.4f}, {figure['high']:.4f}]"
        print_line(f"  {figure['name']:<20} {value}{interval}")
    print_line()
    if found["promise"]:
        _print_promise(found["promise"])
    runtime = found["runtime"]
    if runtime["completed"] is not None:
        jobs = count(runtime["jobs"], "completed job")
        print_line(f"  run time: {runtime['completed']:.1%} of {jobs} stayed within the bound for 95%")
    print_line()
    print_line(
        f"Saved: {found['hours']} of failing jobs with an alarm; Delayed: {found['hours']} of good jobs with an alarm."
    )
    print_table(found["sources"], _SOURCES, header=True, parsable=False)
    print_line(f"Failing jobs without an alarm took {found['wasted']:,.0f} {found['hours']}.")
    for source in found["sources"]:
        if source["missing"]:
            print_message(f"note: {source['source']}: {source['missing']}")
    print_line()
    print_table(found["months"], _COLUMNS, header=True, parsable=False)


def _left_out(outcomes: dict[str, int]) -> str:
    found = ", ".join(f"{number:,} {name}" for name, number in outcomes.items())
    return f"; left out: {found}" if found else ""


def _print_promise(promise: dict[str, Any]) -> None:
    alarming = promise["months"] - promise["silent"]
    if not alarming:
        print_line(
            f"  promised precision {promise['precision']:g}: not tested, because the model raised no alarm in "
            f"{count(promise['silent'], 'month')}"
        )
        return
    kept, possible = promise["kept"], promise["possible"]
    print_line(
        f"  promised precision {promise['precision']:g}: of {count(alarming, 'month')} with alarms of the model, kept in {kept}, "
        f"missed within chance in {possible - kept} (95% interval), missed in {alarming - possible}; "
        f"{count(promise['silent'], 'month')} without alarms"
    )
    print_line(
        f"  precision in the range expected at training: {promise['inside']} of {count(alarming, 'month')}"
    )


_SOURCES = [
    Column("Source", lambda row: row["source"], -12),
    Column("Alarms", number_of("alarms"), 8),
    Column("Precision", number_of("precision", 3), 9),
    Column("Recall", number_of("recall", 3), 7),
    Column("Saved", number_of("saved"), 12),
    Column("Delayed", number_of("delayed"), 12),
]

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


def _print_audit(audit: dict[str, Any]) -> None:
    changed = f"with everything changed that became known after {audit['until']}"
    if audit["clean"]:
        print_message(
            f"audit passed: {changed}, {count(audit['compared'], 'earlier prediction')} stayed the same, bit for bit"
        )
    else:
        print_message(
            f"tocsin: audit failed: {changed}, {audit['differing']:,} of {audit['compared']:,} earlier predictions "
            f"differ, first that of job {audit['example']}; please report this"
        )
