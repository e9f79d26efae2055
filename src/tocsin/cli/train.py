"""`tocsin train`: learn anew, from examples, from the store and from what people answered."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tocsin.cli import options
from tocsin.cli.output import count, print_json, say
from tocsin.cli.settings import Context
from tocsin.core.errors import InputError, ModelError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.store.database import Store
    from tocsin.workload.execution import FittedExecution

__all__ = ["train"]

DAY = 86_400


@click.group()
def train() -> None:
    """Train models."""


@train.command()
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="N",
    help="Jobs that ended in the last N days (the paper's alpha).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("--promote/--no-promote", default=True, show_default=True, help="Put it in service.")
@options.cluster
@options.as_json
@click.pass_obj
def execution(
    context: Context, days: float, seed: int, promote: bool, cluster: str | None, as_json: bool
) -> None:
    """Train what tells an ended job by what it did.

    On the jobs in the store, with what their scripts said as labels; answered cases count more than that.
    """
    from tocsin.workload.execution_training import execution_labels, train_execution

    now = int(time.time())
    with context.store() as store:
        from tocsin.judge.feedback import answered
        from tocsin.store import screenings

        jobs = _ended(store, cluster, since=now - round(days * DAY))
        said = screenings.said(store, since=0)
        labels = execution_labels(jobs, said, answered(store))
    if not labels:
        raise ModelError(
            "no job in the store was screened by its script, so nothing is known to learn from; run: tocsin screen"
        )
    fitted: FittedExecution = train_execution(jobs, labels, now=now, alpha_days=days, seed=seed)
    registry = context.registry(write=True)
    version = registry.add("workload", fitted.save, fitted.card(created=now, data="the jobs in the store"))
    if promote:
        registry.promote("workload", version, why="trained by hand", at=now)
    if as_json:
        print_json(
            {
                "version": version,
                "jobs": fitted.rows,
                "operations": {
                    name: {"jobs": c.rows, "positive": c.positive} for name, c in fitted.operations.items()
                },
                "untrained": dict(fitted.untrained),
                "in_service": promote,
            }
        )
        return
    for name, classifier in fitted.operations.items():
        click.echo(
            f"{name}: learned from {count(classifier.rows, 'job')}, {classifier.positive:,} of them are {name}"
        )
    for name, why in fitted.untrained.items():
        say(f"{name} was not learned: {why}")
    click.echo(f"version {version} is {'in service' if promote else 'kept, not in service'}")


def _ended(store: "Store", cluster: str | None, *, since: int) -> "pl.DataFrame":
    import polars as pl

    from tocsin.store.jobs import Filter, load

    jobs = load(store, Filter(clusters=[cluster] if cluster else [], since=since))
    return jobs.filter(pl.col("end") >= since, pl.col("outcome").is_not_null())


@train.command()
@click.option("--operation", required=True, metavar="NAME", help="What the examples are examples of.")
@click.option(
    "--data", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of examples."
)
@click.option("--with-feedback", is_flag=True, help="Learn from confirmed and dismissed cases, too.")
@options.as_json
@click.pass_obj
def workload(context: Context, operation: str, data: Path, with_feedback: bool, as_json: bool) -> None:
    """Train what tells an operation by the script.

    FOLDER/yes holds scripts that are the operation, FOLDER/no scripts that are not.
    """
    from tocsin.cli.judging import open_screener
    from tocsin.workload.training import operation_card, train_operation

    if not data.is_dir():
        raise InputError(f'there is no folder "{data}"; it must hold examples of {operation}')
    examples, lost = [], 0
    if with_feedback:
        from tocsin.judge.feedback import examples as answers

        with context.store() as store:
            found, lost = answers(store, context.folder.scripts)
        examples = [(example.text, example.label) for example in found if example.operation == operation]
        say(
            f"{count(len(examples), 'answered case')} of {operation} {'is' if len(examples) == 1 else 'are'} learned from"
        )
        if lost:
            say(f"{count(lost, 'answered case')} cannot be: the script was pruned")
    panel = train_operation(operation, data, more=examples)
    screener = open_screener(context).with_panel(panel)
    now, registry = int(time.time()), context.registry(write=True)
    scripts = sum(1 for file in data.rglob("*") if file.is_file()) + len(examples)
    card = operation_card(screener, operation, examples=scripts, created=now, data=data.name)
    version = registry.add("workload", screener.save, card)
    registry.promote("workload", version, why=f"taught {operation}", at=now)
    if as_json:
        print_json(
            {"operation": operation, "examples": scripts, "answered": len(examples), "version": version}
        )
    else:
        click.echo(f"{operation} is learned from {count(scripts, 'script')}; version {version} is in service")
        say("undo: tocsin models rollback workload --stage submit")
