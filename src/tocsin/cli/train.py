"""`tocsin train`: learn anew, from examples, from the store and from what people answered."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, say
from tocsin.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tocsin.learn.train_execution import TrainedExecution
    from tocsin.workload.teaching import Teaching

__all__ = ["train"]


@click.group()
def train() -> None:
    """Train models."""


@train.command()
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Jobs that ended in the last N days (the paper's alpha) [default: workload.alpha_days, 5].",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("--promote/--no-promote", default=True, show_default=True, help="Put it in service.")
@options.cluster
@options.as_json
@click.pass_obj
def execution(
    app: App, days: float | None, seed: int, promote: bool, cluster: str | None, as_json: bool
) -> None:
    """Train what tells an ended job by what it did.

    On the jobs in the app.store, with what their scripts said as labels; answered cases count more than that. `tocsin
    screen` and `tocsin watch` do it by themselves every day (workload.beta_days).
    """
    from tocsin.learn.train_execution import train_on_store

    kept = train_on_store(
        app.store,
        app.registry,
        now=int(time.time()),
        alpha_days=app.settings.workload.alpha_days if days is None else days,
        cluster=cluster,
        seed=seed,
        promote=promote,
    )
    if as_json:
        print_json(_as_json(kept))
        return
    for name, classifier in kept.model.operations.items():
        click.echo(
            f"{name}: learned from {count(classifier.rows, 'job')}, {classifier.positive:,} of them are {name}"
        )
        click.echo(f"  by {', '.join(classifier.features)}")
        for why, features in _by_reason(classifier.dropped).items():
            click.echo(f"  not by {', '.join(features)}: {why}")
    for name, why in kept.model.untrained.items():
        say(f"{name} was not learned: {why}")
    click.echo(f"version {kept.version} is {'in service' if promote else 'kept, not in service'}")


def _as_json(kept: "TrainedExecution") -> dict[str, Any]:
    return {
        "version": kept.version,
        "jobs": kept.model.rows,
        "operations": {
            name: {
                "jobs": each.rows,
                "positive": each.positive,
                "features": list(each.features),
                "dropped": dict(each.dropped),
            }
            for name, each in kept.model.operations.items()
        },
        "untrained": dict(kept.model.untrained),
        "in_service": kept.in_service,
    }


def _by_reason(dropped: "Mapping[str, str]") -> dict[str, list[str]]:
    """Features that are dropped for one reason together; a correlation is told with each."""
    found: dict[str, list[str]] = {}
    for name, why in dropped.items():
        found.setdefault(why, []).append(name)
    return found


@train.command()
@click.option("--operation", metavar="NAME", help="What the examples are examples of.")
@click.option("--data", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of examples.")
@click.option(
    "--rules",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Instead: a TOML file of operations by their words; it takes the place of earlier rules.",
)
@click.option(
    "--encoder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Use a sentence model (model.onnx, tokenizer.json), such as all-MiniLM-L6-v2, instead of n-grams.",
)
@click.option("--with-feedback", is_flag=True, help="Learn from confirmed and dismissed cases, too.")
@click.option(
    "--promote/--no-promote",
    default=True,
    show_default=True,
    help="Put it in service, unless it is worse than what it was learned on top of.",
)
@options.as_json
@click.pass_obj
def workload(
    app: App,
    operation: str | None,
    data: Path | None,
    rules: Path | None,
    encoder: Path | None,
    with_feedback: bool,
    promote: bool,
    as_json: bool,
) -> None:
    """Train what tells an operation by the script.

    FOLDER/yes holds scripts that are the operation, FOLDER/no scripts that are not. What the shipped weights tell (ai,
    cryptomining, cyber) is learned on top of them; what was taught of it before is replaced, so keep all examples in
    one folder. Or name an operation by rules: a table [NAME] with words = [...] or phrases = [...] for each.
    """
    if rules is not None and not (operation or data or encoder or with_feedback):
        _ruled(app, rules, promote, as_json)
        return
    if operation is None or data is None or rules is not None:
        raise click.UsageError("name --operation and --data, or --rules alone")
    from tocsin.app.judge import open_screener
    from tocsin.workload.own_examples import read_examples
    from tocsin.workload.teaching import operation_card, teach

    if not data.is_dir():
        raise InputError(f'there is no folder "{data}"; it must hold examples of {operation}')
    answered = _answered(app, operation) if with_feedback else []
    examples = read_examples(operation, data, more=answered)
    if examples.no_text:
        say(
            f"{count(examples.no_text, 'file')} in {data} {_are(examples.no_text)} no text; nothing is learned from it"
        )
    if examples.contradicting:
        say(f"{count(examples.contradicting, 'answer')} contradict each other; nothing is learned from them")
    taught = teach(open_screener(app), operation, examples, encoder=encoder)
    now, registry = int(time.time()), app.registry
    card = operation_card(taught.screener, operation, created=now, data=data.name, teaching=taught)
    version = registry.add("workload", taught.screener.save, card)
    in_service = promote and taught.worthy
    if in_service:
        registry.promote("workload", version, why=f"taught {operation}", at=now)
    if as_json:
        print_json(
            {
                "operation": operation,
                "examples": {"yes": len(examples.yes), "no": len(examples.no), "no_text": examples.no_text},
                "answered": len(answered) - examples.contradicting,
                "right": taught.now._asdict(),
                "right_before": taught.before._asdict() if taught.before else None,
                "version": version,
                "in_service": in_service,
            }
        )
        return
    _say_taught(operation, taught, version, promote=promote)
    if in_service:
        _say_who_may(app, operation)


def _answered(app: App, operation: str) -> list[tuple[str, bool]]:
    """The scripts of answered cases, and whether each is the operation."""
    from tocsin.learn.feedback import examples

    found, lost = examples(app.store, app.home.scripts)
    told = [(example.text, example.label) for example in found if example.operation == operation]
    say(f"{count(len(told), 'answered case')} of {operation} {_are(len(told))} learned from")
    if lost:
        say(f"{count(lost, 'answered case')} cannot be: the script was pruned")
    return told


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _say_taught(operation: str, taught: "Teaching", version: str, *, promote: bool) -> None:
    examples = taught.examples
    click.echo(
        f"{operation} is learned from {count(len(examples), 'script')}, {len(examples.yes):,} of them are it"
        + (", on top of the shipped weights" if taught.before else "")
    )
    lines = [("told rightly, each left out of the learning", taught.now)]
    lines += [("told rightly by the shipped weights", taught.before)] if taught.before else []
    for what, told in lines:
        click.echo(
            f"  {what}: {told.yes:,} of {len(examples.yes):,} that are it, {told.no:,} of {len(examples.no):,} that are not"
        )
    if promote and taught.worthy:
        click.echo(f"version {version} is in service")
        say("undo: tocsin models rollback workload --stage submit")
        return
    if not taught.worthy:
        worse = "worse than what it was learned on top of" if taught.before else "no better than guessing"
        say(f"on these examples it is {worse}, so it is not put in service; give more examples")
    click.echo(f"version {version} is kept, not in service")
    say(f"to put it in service: tocsin models promote workload {version}")


def _ruled(app: App, path: Path, promote: bool, as_json: bool) -> None:
    """The screener in service with these rules."""
    from tocsin.app.judge import open_screener
    from tocsin.workload.rules import read_rules
    from tocsin.workload.screening import Screener
    from tocsin.workload.teaching import operation_card

    rules = read_rules(path)
    screener = Screener(open_screener(app).panels, rules)
    names = [rule.operation for rule in rules]
    now, registry = int(time.time()), app.registry
    card = operation_card(screener, ", ".join(names), created=now, data=path.name)
    version = registry.add("workload", screener.save, card)
    if promote:
        registry.promote("workload", version, why=f"rules of {path.name}", at=now)
    if as_json:
        print_json({"operations": names, "version": version, "in_service": promote})
        return
    if not promote:
        click.echo(f"version {version} with rules for {', '.join(names)} is kept, not in service")
        say(f"to put it in service: tocsin models promote workload {version}")
        return
    click.echo(f"{', '.join(names)}: told by rule from now on; version {version} is in service")
    say("undo: tocsin models rollback workload --stage submit")
    for name in names:
        _say_who_may(app, name)


def _say_who_may(app: App, operation: str) -> None:
    """An operation that a site adds is for listed ones only: who does not know that is surprised by alarms."""
    from tocsin.app.allow import allow_book
    from tocsin.judge.allow import DEFAULTS

    if operation in DEFAULTS:
        return
    allowed = allow_book(app).current()
    listed = [grant for grant in allowed.entries if grant.operation == operation]
    if str(allowed.default(operation)) == "listed" and not listed:
        say(
            f"note: {operation} is for listed ones only, and nobody is listed, so every such job is rogue; "
            f"see: tocsin allow default {operation} allowed"
        )
