"""`tocsin models`: the versions of each detector's models, and which of them are in use."""

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from tocsin.app import champions
from tocsin.app import models as app_models
from tocsin.app.app import App
from tocsin.app.champions import ModelRequest
from tocsin.app.learning import measured_here
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_line, print_message, text_of
from tocsin.core.stages import Stage

__all__ = ["models"]

_detector = click.argument("detector")
_stage = click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in Stage]),
    callback=options.member(Stage),
    help="Champion of this stage.",
)
_cluster = click.option("-M", "--cluster", metavar="NAME", help="Champion of this cluster [default: of all].")


@click.group(cls=options.ListedByDefault)
def models() -> None:
    """List, show, verify and promote models."""


@models.command("list")
@click.argument("detector", required=False)
@options.listing
@click.pass_obj
def list_(app: App, detector: str | None, listing: Listing) -> None:
    """List all versions, the oldest first, with their live precision and recall.

    Live figures are those of the last four weeks of verdicts, on jobs whose outcome is known by now. A version that was
    used at several clusters has a line for each.
    """
    rows = app_models.list_models(app, detector, measured_here(app, detector))
    if listing.as_json:
        print_json(rows)
    elif rows:
        listing.print_table(
            [{**row, "live": live} for row in rows for live in row["live"] or [None]], _COLUMNS
        )
    else:
        print_message(f"no model is stored in {app.home.models} yet")


@models.command()
@_detector
@click.argument("version", default="champion")
@_stage
@_cluster
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path),
              help="Write charts of its curves (SVG) to FOLDER.")  # fmt: skip
@options.as_json
@click.pass_obj
@options.gathered(ModelRequest, "model")
def show(app: App, model: ModelRequest, out: Path | None, as_json: bool) -> None:
    """Show the card of a VERSION, or of the champion."""
    if out is not None:
        for path in app_models.write_charts(app, model, out):
            print_message(f"wrote {path}")
    card = app_models.show_model(app, model, measured_here(app, model.detector))
    if as_json:
        print_json(card)
    else:
        _print_card(card)


@models.command()
@_detector
@click.argument("version")
@_stage
@_cluster
@click.option("--why", default="by hand", metavar="TEXT", help="The reason, for the card.")
@options.as_json
@click.pass_obj
@options.gathered(ModelRequest, "model")
def promote(app: App, model: ModelRequest, why: str, as_json: bool) -> None:
    """Make VERSION (or "challenger") the champion of its stage.

    A champion of one cluster (-M) is used there instead of the champion for all clusters. Without -M, it is the champion of
    the store's only cluster if that has one of its own already, and of all clusters otherwise.
    """
    _report(champions.promote(app, model, why), as_json)


@models.command()
@_detector
@click.argument("version", default="challenger")
@_stage
@_cluster
@click.option("--end", is_flag=True, help="End the challenge: only the version in use scores jobs.")
@options.as_json
@click.pass_obj
@options.gathered(ModelRequest, "model")
def challenge(app: App, model: ModelRequest, end: bool, as_json: bool) -> None:
    """Score live jobs with VERSION, too, beside the one in use.

    Nothing acts on its scores. `tocsin models` compares both as outcomes arrive, and the next nightly run promotes it if it is
    no worse on live jobs.
    """
    change = champions.challenge(app, model, end=end)
    if as_json:
        print_json(change)
        return
    place = f"{change['stage']} on {change['cluster']}" if change["cluster"] else change["stage"]
    if end:
        print_message(f"no version of {change['detector']} runs beside the one in use at {place} any more")
    else:
        print_message(
            f"{change['detector']} {change['challenger']} now runs beside the one in use at {place}"
        )


@models.command()
@_detector
@_stage
@_cluster
@click.option(
    "--none", "to_none", is_flag=True, help="Use the shipped model, or none if there is no shipped one."
)
@click.option("--why", default="roll-back", metavar="TEXT", help="The reason, for the card.")
@options.as_json
@click.pass_obj
def rollback(
    app: App, detector: str, stage: Stage | None, cluster: str | None, to_none: bool, why: str, as_json: bool
) -> None:
    """Return to the previous champion, or to none.

    Afterwards, no model goes into use by itself: daily retraining stops until a version is promoted by hand.
    """
    model = ModelRequest(detector=detector, stage=stage, cluster=cluster)
    _report(champions.rollback(app, model, why, to_none=to_none), as_json)


@models.command()
@click.argument("detector", required=False)
@click.argument("version", required=False)
@options.as_json
@click.pass_obj
def verify(app: App, detector: str | None, version: str | None, as_json: bool) -> None:
    """Compare every file with its hash and load every model; exit with 1 if one was changed or is damaged."""
    results = app_models.verify_models(app, detector, version)
    if as_json:
        print_json(results)
    bad = [result for result in results if not result["sound"]]
    for result in bad:
        print_message(f"tocsin: {result['trouble']}")
    if not bad:
        print_message(f"{count(len(results), 'model')} checked: no file was changed")
    raise SystemExit(1 if bad else 0)


def _report(change: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(change)
        return
    model, before = f"{change['detector']} {change['champion'] or ''}".rstrip(), change["before"]
    place = f"{change['stage']} on {change['cluster']}" if change["cluster"] else change["stage"]
    if change["champion"] is None:
        print_message(
            f"{model} has no model in use for {place} now (before: {before}); to use one again: tocsin models promote"
        )
    elif before == change["champion"]:
        print_message(f"{model} is already the champion for {place}")
    else:
        print_message(f"{model} is now the champion for {place} (before: {before or 'none'})")


_THRESHOLD_WORDS = {
    "alarms_per_day": "alarms a day",
    "saved": "node-hours saved",
    "delayed": "node-hours delayed",
    "wasted": "node-hours wasted",
}
_MOST_FEATURES = 12
_COLUMNS = [
    Column("Detector", text_of("detector"), -12),
    Column("Version", text_of("version"), 13),
    Column("Alias", lambda row: ",".join(row["aliases"]), -13),
    Column("Stage", text_of("stage"), -7),
    Column("Target", lambda row: row["target"] or ",".join(row["operations"] or ()), -12),
    Column("Engine", lambda row: row["engine"] or "cannot be read", -14),
    Column("Rows", lambda row: "" if row["rows"] is None else str(row["rows"]), 10),
    Column("Created", text_of("created"), -20),
    Column("LiveJobs", lambda row: f"{row['live']['jobs']:,}" if row["live"] else "", 8),
    Column("LivePrecision", lambda row: _measured(row["live"], "precision"), -18),
    Column("LiveRecall", lambda row: _measured(row["live"], "recall"), -18),
]


def _measured(live: dict[str, Any] | None, name: str) -> str:
    """`0.84 [0.79,0.88]`; empty without a live job, and `too few` if a figure would be chance."""
    if not live:
        return ""
    found = live[name]
    return f"{found['value']:.2f} [{found['low']:.2f},{found['high']:.2f}]" if found else "too few"


def _print_card(card: dict[str, Any]) -> None:
    def line(name: str, value: object) -> None:
        if value not in (None, "", []):
            print_line(f"{name:<12} {value}")

    aliases, window, features = card["aliases"], card["window"], card["features"]
    line("model", f"{card['detector']} {card['version']}" + (f" ({', '.join(aliases)})" if aliases else ""))
    line("stage", card["stage"])
    line("target", card["target"])
    line("operations", ", ".join(card["operations"]))
    line("clusters", ", ".join(card["clusters"]))
    line("engine", card["engine"])
    line("created", f"{card['created']} by tocsin {card['tocsin']}")
    line("window", window and f"{window['first']} to {window['last']}")
    line("rows", f"{card['rows']:,}")
    line("data", card["data_hash"])
    line("features", _listed(features))
    line("parameters", ", ".join(f"{name}={value}" for name, value in card["parameters"].items()))
    line("calibration", (card["calibration"] or {}).get("kind"))
    for purpose, rows in card.get("uses", {}).items():
        line("rows for", f"{purpose}: {rows}")
    line("parent", card["parent"])
    for threshold in card["thresholds"]:
        line("threshold", _threshold_text(threshold))
    for (stage, split), figures in groupby(
        card["figures"], key=lambda figure: (figure["stage"], figure["split"])
    ):
        line("figures", f"at {stage}; {split}")
        for data, measured in groupby(figures, key=lambda figure: figure["data"]):
            line("", f"{data}: {', '.join(map(_figure, measured))}")
    for live in card["live"]:
        line("live", _live_text(live))
    for promotion in card["promotions"]:
        place = f" on {promotion['cluster']}" if promotion["cluster"] else ""
        replaced = promotion["replaced"] or "none"
        line("promoted", f"{promotion['at']}{place}, replaced {replaced}: {promotion['why']}")
    for name, digest in card["files"].items():
        line("file", f"{name} sha256 {digest}")


def _listed(features: list[str]) -> str:
    """How many there are, and the first of them."""
    if len(features) <= _MOST_FEATURES:
        return f"{len(features)}: {', '.join(features)}" if features else ""
    return f"{len(features)}: {', '.join(features[:_MOST_FEATURES])}, … (--json lists all)"


def _figure(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return f"{figure['name']} unknown ({figure['reason']})"
    interval = "" if figure["low"] is None else f" [{figure['low']:.4f}, {figure['high']:.4f}]"
    return f"{figure['name']} {figure['value']:.4f}{interval}"


def _threshold_text(threshold: dict[str, Any]) -> str:
    """Its value, what it would have done on held-out jobs, and the rule that chose it."""
    shown = [
        f"{_THRESHOLD_WORDS.get(key, key)} {_shown(value)}"
        for key, value in threshold.items()
        if value is not None and key not in ("met", "text")
    ]
    if threshold.get("met") is False:
        shown.append("which no threshold met")
    text = threshold.get("text")
    return ", ".join(shown) + (f": {text}" if text else "")


def _shown(value: object) -> str:
    """A value of a threshold: numbers rounded, a rule as `tocsin threshold` takes it."""
    if isinstance(value, dict) and set(value) == {"kind", "value"}:
        return f"{value['kind']}={value['value']:g}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _live_text(live: dict[str, Any]) -> str:
    share = ", control share only" if live["control"] else ""
    return (
        f"{live['stage']} on {live['cluster']}, verdicts from {live['since']} to {live['until']}{share}: "
        f"{live['jobs']:,} jobs, {live['failed']:,} failed, {live['alarms']:,} alarms; "
        + "; ".join(
            f"{name} {_measured(live, name)}"
            + (f" ({live['missing'][name]})" if name in live["missing"] else "")
            for name in ("precision", "recall", "auc")
        )
    )
