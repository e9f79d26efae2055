"""`tocsin nightly`: retrain the models in use."""

from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.nightly import AlreadyRunning, NightlyRequest
from tocsin.app.nightly import nightly as run
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message

__all__ = ["nightly"]


@click.command()
@click.argument("detectors", nargs=-1, metavar="[DETECTOR]...")
@click.option("-M", "--cluster", metavar="NAME", help="Only models that learned from this cluster.")
@click.option("--dry-run", is_flag=True, help="Show drift and what would be done; train and change nothing.")
@options.as_json
@click.pass_obj
@options.gathered(NightlyRequest, "request")
def nightly(app: App, request: NightlyRequest, as_json: bool) -> None:
    """Retrain models and promote those that are no worse than before.

    Meant for a timer; `tocsin serve` does it by itself. The last days (learn.holdback_days) are held back from training. A
    new model goes into use if it is better on them beyond noise, or not worse; otherwise it runs beside the one in use. The
    failure model is retrained every learn.failure_days, or when it is named. A second run on the same day does nothing, and
    a killed run is continued by the next one. Undo a promotion with `tocsin models rollback`.
    """
    try:
        found = [outcome.to_json() for outcome in run(app, request)]
    except AlreadyRunning as other:  # another run is active, so the timer has not failed
        print_message(f"tocsin: {other}")
        if as_json:
            print_json([])
        return
    if as_json:
        print_json(found)
    else:
        for outcome in found:
            _print(outcome)
        if not found:
            whose = f" that learned from {request.cluster} alone" if request.cluster else ""
            print_message(
                f"no trained model{whose} is in use, so there is nothing to retrain; see: tocsin train --help"
            )
    if any(outcome["state"] == "failed" for outcome in found):
        raise SystemExit(1)


_STATES = {
    "promoted": "{challenger} replaces {champion}: {why}",
    "kept": "{champion} stays in use; {challenger} does not replace it: {why}",
    "done": "already done today ({why})",
    "skipped": "{champion} stays in use, not retrained: {why}",
    "failed": "{champion} stays in use: {why}",
    "planned": "{champion} {why}",
}


def _print(outcome: dict[str, Any]) -> None:
    place = f"{outcome['detector']} at {outcome['stage']}" + (
        f" on {outcome['cluster']}" if outcome["cluster"] else ""
    )
    print_line(f"{place}: {_STATES[outcome['state']].format(**outcome)}")
    if outcome["state"] == "done":
        return
    for drift in outcome["drift"]:
        print_line(f"  {_drift(drift)}")
    if outcome["state"] == "promoted":
        where = f" -M {outcome['cluster']}" if outcome["cluster"] else ""
        print_message(f"undo: tocsin models rollback {outcome['detector']} --stage {outcome['stage']}{where}")


def _drift(drift: dict[str, Any]) -> str:
    if drift["stability"] is not None:
        return f"drift of {drift['name']}: {drift['strength']} (stability index {drift['stability']:.3f})"
    then, now = ("unknown" if value is None else f"{value:.4f}" for value in (drift["then"], drift["now"]))
    return f"{drift['name']}: {then} when it was trained, {now} now"
