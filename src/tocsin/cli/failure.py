"""`tocsin train failure` and `tocsin threshold`: the failure model made and set."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.logs import LogRequest, one_cluster, read_jobs
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.backtest import threads
from tocsin.cli.output import Column, Listing, number_of, print_json, progress_bar, say
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.failure.fitted import FittedFailure
    from tocsin.learn.train_failure import TrainedFailure
    from tocsin.models.thresholds import ThresholdRule

__all__ = ["champion", "threshold", "train_failure"]

_ENGINES = ("lightgbm", "xgboost", "catboost", "bagged")
_LINES = 25


@click.command("failure")
@options.log_options(store_by_default=True)
@options.stage
@options.target
@click.option("--engine", type=click.Choice(_ENGINES), default="lightgbm", show_default=True)
@options.rule
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Trials of the search.")  # fmt: skip
@click.option("--shortest", type=click.IntRange(min=0), default=0, metavar="SECONDS",
              help="Leave out jobs that ran for less (HPE: 120).")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("--promote/--no-promote", default=True, show_default=True, help="Put it in service.")
@options.as_json
@click.pass_obj
def train_failure(
    app: App,
    log: LogRequest,
    stage: Stage,
    target: Target | None,
    engine: str,
    rule: "ThresholdRule",
    trials: int,
    shortest: int,
    seed: int,
    promote: bool,
    as_json: bool,
) -> None:
    """Train what foresees that a job fails.

    On the jobs of the store (as without LOG), or of a LOG. The model is kept with its card and curves.
    """
    jobs = read_jobs(app, log)
    import polars as pl

    from tocsin.core.detector import Budget
    from tocsin.failure.detector import FailureDetector
    from tocsin.history.replay import Replay
    from tocsin.learn.train_failure import train_failure as run

    cluster = one_cluster(jobs)
    zone = app.zone(log.cluster or cluster, log.tz).key
    lessons = jobs.filter((pl.col("elapsed") >= shortest).fill_null(True)) if shortest else jobs
    if not as_json:
        say(f"learning from {count(lessons.height, 'job')}, {count(trials, 'trial')}; this may take minutes")
    with progress_bar("searching", trials, quiet=as_json) as advance:
        kept = run(
            lessons,
            Replay(jobs),
            app.registry,
            FailureDetector(target=target, rule=rule, engine=engine, zone=zone, threads=threads()),
            stage=stage,
            budget=Budget(trials=trials, progress=advance),
            seed=seed,
            promote=promote,
            cluster=log.cluster,
        )
    if shortest and not as_json:
        dropped = count(jobs.height - lessons.height, "job")
        say(f"{dropped} that ran for less than {shortest} s taught nothing")
    _tell_kept(kept, as_json)


def _tell_kept(kept: "TrainedFailure", as_json: bool) -> None:
    model = kept.model
    chosen = model.calibrated.threshold
    if as_json:
        print_json(
            {
                "version": kept.version,
                "stage": str(model.columns.stage),
                "target": str(model.target),
                "rows": model.rows,
                "features": len(model.columns.names),
                "dropped": dict(model.plan.dropped),
                "importances": dict(model.plan.importances),
                "threshold": chosen.to_json(),
                "split": kept.card.figures[0].split,
                "figures": {f.name: f.value for f in model.calibrated.figures},
                "in_service": kept.in_service,
            }
        )
        return
    click.echo(
        f"failure {kept.version}: {model.target} at {model.columns.stage}, learned from {count(model.rows, 'job')} "
        f"with {len(model.columns.names)} features ({len(model.plan.dropped)} left out)"
    )
    click.echo(f"  {kept.card.figures[0].split}:")
    for figure in model.calibrated.figures:
        if figure.value is not None:
            interval = "" if figure.low is None else f"  [{figure.low:.4f}, {figure.high:.4f}]"
            click.echo(f"  {figure.name:<20} {figure.value:.4f}{interval}")
    click.echo(f"  rings from probability {chosen.value:.3f} on: {chosen.text}")
    top = ", ".join(list(model.plan.importances)[:5])
    click.echo(f"  what tells most: {top}")
    click.echo(f"charts of its curves: tocsin models show failure {kept.version} --out FOLDER")
    click.echo(
        "it is in service"
        if kept.in_service
        else f"to put it in service: tocsin models promote failure {kept.version}"
    )


@click.command()
@options.stage
@options.cluster
@click.option(
    "--rule", metavar="KIND=VALUE", callback=options.rule_of, help="Set the threshold by this rule."
)
@options.listing
@click.pass_obj
def threshold(
    app: App, stage: Stage, cluster: str | None, rule: "ThresholdRule | None", listing: Listing
) -> None:
    """Show what each threshold would have done, or set one by a rule.

    Rules: precision_at_least=0.9, recall_at_least=0.5, alarms_per_day_at_most=20, least_cost=1 (what a delayed node-hour
    costs beside a wasted one). What is shown was measured on the last fifth of the training, which the model that was
    measured had not seen.
    """
    from tocsin.learn.train_failure import set_rule

    registry, model, version = champion(app, stage, cluster)
    if rule is not None:
        kept = set_rule(registry, model, rule, parent=version, cluster=cluster)
        chosen = kept.model.calibrated.threshold
        if listing.as_json:
            print_json({"version": kept.version, "before": version, "threshold": chosen.to_json()})
            return
        click.echo(f"failure {kept.version} rings from probability {chosen.value:.3f} on: {chosen.text}")
        if not chosen.met:
            say("note: the rule could not be met on the jobs that were predicted; this is the nearest")
        say(f"undo: tocsin models promote failure {version}")
        return
    now = model.calibrated.threshold
    others = [row for row in model.calibrated.table if row.value != now.value]
    if not listing.as_json:
        others = others[:: max(1, len(others) // _LINES)]
    rows = [
        row.to_json() | {"chosen": row is now}
        for row in sorted([*others, now], key=lambda row: row.value, reverse=True)
    ]
    if listing.as_json:
        print_json({"version": version, "threshold": now.to_json(), "table": rows})
        return
    listing.print_table(rows, _THRESHOLDS)
    if not listing.parsable2:
        days = f"{now.alarms_per_day:.1f} alarms a day"
        say(f"failure {version} rings from probability {now.value:.3f} on ({now.rule}): {now.text}, {days}")


_THRESHOLDS = [
    Column("Threshold", number_of("value", 3), 9),
    Column("AlarmsADay", number_of("alarms_per_day", 1), 10),
    Column("Precision", number_of("precision", 3), 9),
    Column("Recall", number_of("recall", 3), 6),
    Column("SavedNodeH", number_of("saved"), 12),
    Column("DelayedNodeH", number_of("delayed"), 12),
    Column("WastedNodeH", number_of("wasted"), 12),
    Column("Set", lambda row: "yes" if row["chosen"] else "", -3),
]


def champion(app: App, stage: Stage, cluster: str | None) -> "tuple[Any, FittedFailure, str]":
    from tocsin.failure.detector import FailureDetector

    registry = app.registry
    if registry.champion("failure", stage, cluster) is None:
        raise ModelError(
            f"no failure model is trained for {stage} yet; `tocsin train failure --stage {stage}` trains one on the store"
        )
    folder, card = registry.open_verified("failure", stage=stage, cluster=cluster)
    return registry, FailureDetector(threads=1).load(Path(folder)), card.version
