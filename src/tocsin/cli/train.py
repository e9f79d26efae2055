"""`tocsin train` and `tocsin threshold`: train models, and set when the failure model raises an alarm."""

from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.app.threshold import set_threshold, thresholds
from tocsin.app.train import (
    ExecutionRequest,
    FailureRequest,
    WorkloadRequest,
    train_execution,
    train_failure,
    train_rules,
    train_workload,
)
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, number_of, print_json, print_line, print_message
from tocsin.core.stages import Stage

__all__ = ["threshold", "train"]

_LINES = 25

_promote = click.option("--promote/--no-promote", default=True, show_default=True,
                        help="Use the model from now on.")  # fmt: skip
_seed = click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")


@click.group()
def train() -> None:
    """Train models."""


@train.command()
@options.log_options(store_by_default=True)
@options.stage
@options.target
@options.engine
@options.rule
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Trials of the parameter search.")  # fmt: skip
@options.shortest
@_seed
@_promote
@options.as_json
@click.pass_obj
@options.gathered(FailureRequest, "request")
def failure(app: App, request: FailureRequest, as_json: bool) -> None:
    """Train the failure-prediction model.

    Uses the jobs of the store, or of a LOG. The model is stored with its card and curves.
    """
    trained = train_failure(app, request)
    if as_json:
        print_json(trained)
        return
    if trained["too_short"]:
        print_message(
            f"left out: {count(trained['too_short'], 'job')} that ran for less than {request.shortest} s"
        )
    print_line(
        f"failure {trained['version']}: target {trained['target']} at {trained['stage']}, trained on "
        f"{count(trained['rows'], 'job')} with {trained['features']} features ({len(trained['dropped'])} dropped)"
    )
    print_line(f"  {trained['split']}:")
    for name, value in trained["figures"].items():
        low, high = trained["intervals"].get(name, (None, None))
        interval = "" if low is None else f"  [{low:.4f}, {high:.4f}]"
        print_line(f"  {name:<20} {value:.4f}{interval}")
    chosen = trained["threshold"]
    alarms = f"an alarm at probability {chosen['value']:.3f} or more" if chosen["value"] <= 1 else "no alarm"
    print_line(f"  raises {alarms}: {chosen['text']}")
    print_line(f"  most important features: {', '.join(list(trained['importances'])[:5])}")
    print_line(f"charts of its curves: tocsin models show failure {trained['version']} --out FOLDER")
    _print_promoted("failure", trained)


@train.command()
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Use jobs that ended in the last N days [default: workload.alpha_days, 5].",
)
@_seed
@_promote
@options.cluster
@options.as_json
@click.pass_obj
@options.gathered(ExecutionRequest, "request")
def execution(app: App, request: ExecutionRequest, as_json: bool) -> None:
    """Train the model that classifies ended jobs by what they did.

    Uses the jobs in the store, labelled by the script classifier; answered cases override it. An operation is used only
    with enough jobs of several users, high precision on later jobs, and agreement with answered cases. `tocsin screen`
    and `tocsin watch` retrain it daily (workload.beta_days).
    """
    trained = train_execution(app, request)
    if as_json:
        print_json(trained)
        return
    for name, classifier in trained["operations"].items():
        print_line(
            f"{name}: trained on {count(classifier['jobs'], 'job')}, {classifier['positive']:,} of them {name}"
        )
        print_line(f"  features: {', '.join(classifier['features'])}")
        for reason in dict.fromkeys(classifier["dropped"].values()):
            dropped = [name for name, why in classifier["dropped"].items() if why == reason]
            print_line(f"  dropped: {', '.join(dropped)}: {reason}")
        if classifier["refused"]:
            print_message(f"{name} is not used: {classifier['refused']}")
    for name, reason in trained["untrained"].items():
        print_message(f"{name} was not trained: {reason}")
    _print_promoted("workload", trained)


@train.command()
@click.option("--operation", metavar="NAME", help="The operation that the examples show.")
@click.option("--data", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of examples.")
@click.option("--rules", metavar="FILE", type=click.Path(path_type=Path),
              help="Instead: a TOML file that defines operations by words; replaces earlier rules.")  # fmt: skip
@click.option("--encoder", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Use a sentence model (model.onnx, tokenizer.json), such as all-MiniLM-L6-v2, instead of n-grams.")  # fmt: skip
@click.option("--with-feedback", is_flag=True, help="Use confirmed and dismissed cases, too.")
@_promote
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
    """Train the model that classifies jobs by their scripts.

    FOLDER/yes holds scripts that are the operation, FOLDER/no scripts that are not. Shipped operations (ai,
    cryptomining, cyber) are trained on top of the shipped weights. Earlier examples are replaced, so keep all in one
    folder. A model that is worse than before is
    not promoted. A file of rules has a table [NAME] with words = [...] or phrases = [...] for each operation.
    """
    if rules is not None and not (operation or data or encoder or with_feedback):
        trained = train_rules(app, rules, promote=promote)
    elif operation is None or data is None or rules is not None:
        raise click.UsageError("name --operation and --data, or --rules alone")
    else:
        request = WorkloadRequest(
            operation=operation, data=data, encoder=encoder, with_feedback=with_feedback, promote=promote
        )
        trained = train_workload(app, request)
    if as_json:
        print_json(trained)
        return
    if "right" in trained:
        _print_accuracy(trained)
    else:
        print_line(f"classified by rule: {', '.join(trained['operations'])}")
    _print_promoted("workload", trained)


def _print_accuracy(trained: dict[str, Any]) -> None:
    yes, no = trained["examples"]["yes"], trained["examples"]["no"]
    before = trained["right_before"]
    base = ", on top of the shipped weights" if before else ""
    print_line(f"{trained['operation']}: trained on {count(yes + no, 'script')}, {yes:,} positive{base}")
    for what, right in (("cross-validated", trained["right"]), ("shipped weights", before)):
        if right:
            print_line(
                f"  correct ({what}): {right['yes']:,} of {yes:,} positive, {right['no']:,} of {no:,} negative"
            )
    if trained["worse"]:
        worse = "worse than the model it was trained on top of" if before else "no better than guessing"
        print_message(f"on these examples it is {worse}, so it is not promoted; add more examples")


def _print_promoted(detector: str, trained: dict[str, Any]) -> None:
    version, cluster = trained["version"], trained.get("cluster")
    if trained["promoted"]:
        where, of = (f" on {cluster}", f" -M {cluster}") if cluster else ("", "")
        print_line(f"{detector} {version} is now in use{where} (promoted to champion)")
        print_message(f"undo: tocsin models rollback {detector} --stage {trained['stage']}{of}")
    else:
        print_line(f"{detector} {version} is stored but not in use")
        print_message(f"to use it: tocsin models promote {detector} {version}")


@click.command()
@options.stage
@options.cluster
@click.option("--rule", metavar="KIND=VALUE", callback=options.checked_rule,
              help="Set the threshold by this rule.")  # fmt: skip
@options.listing
@click.pass_obj
def threshold(app: App, stage: Stage, cluster: str | None, rule: str | None, listing: Listing) -> None:
    """Show or set the threshold for failure alarms.

    Shows what each threshold would have done on the last 40% of the training data by time, each job scored by a model
    of earlier jobs (for the shipped model: of other clusters). Or sets one by a rule: precision_at_least=0.9,
    recall_at_least=0.5, alarms_per_day_at_most=20, least_cost=1 (cost of a delayed node-hour relative to a wasted one).
    """
    found = set_threshold(app, stage, cluster, rule) if rule else thresholds(app, stage, cluster)
    chosen = found["threshold"]
    where = f" on {found['cluster']}" if found["cluster"] else ""
    alarm = (
        "raises no alarms"
        if chosen["value"] > 1
        else f"raises an alarm at probability {chosen['value']:.3f} or more"
    )
    summary = f"failure {found['version']}{where} {alarm}"
    if listing.as_json:
        print_json(found)
    elif rule:
        print_line(f"{summary}: {chosen['text']}")
        if not chosen["met"]:
            instead = "so none is set" if chosen["value"] > 1 else "so the nearest is set"
            print_message(f"note: no threshold met the rule on the held-out jobs, {instead}")
        of = f" -M {found['cluster']}" if found["cluster"] else ""
        print_message(f"undo: tocsin models promote failure {found['before']}{of}")
    else:
        others = [row for row in found["table"] if not row["chosen"]]
        shown = others[:: max(1, len(others) // _LINES)]
        listing.print_table([row for row in found["table"] if row["chosen"] or row in shown], _THRESHOLDS)
        if not listing.parsable2:
            by = f" ({chosen['rule']['kind']}={chosen['rule']['value']:g})" if chosen["rule"] else ""
            rate = chosen["alarms_per_day"] if chosen["alarms"] else None
            print_message(
                f"{summary}{by}: {chosen['text']}{'' if rate is None else f', {rate:.1f} alarms a day'}"
            )
            learned = found["clusters"]
            data = learned[0] if len(learned) == 1 else f"{len(learned)} clusters"
            print_message(
                f"measured at {found['stage']}, target {found['target']}, on held-out jobs of {data}"
            )


_THRESHOLDS = [
    Column("Threshold", number_of("value", 3), 9),
    Column("AlarmsPerDay", number_of("alarms_per_day", 1), 12),
    Column("Precision", number_of("precision", 3), 9),
    Column("Recall", number_of("recall", 3), 6),
    Column("SavedNodeH", number_of("saved"), 12),
    Column("DelayedNodeH", number_of("delayed"), 12),
    Column("WastedNodeH", number_of("wasted"), 12),
    Column("Set", lambda row: "yes" if row["chosen"] else "", -3),
]
