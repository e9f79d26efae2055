"""`tocsin models`: the versions of each detector's models, and which of them are in use."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, say
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.models.cards import Card
    from tocsin.models.registry import Registry

__all__ = ["models"]

_stage = click.option(
    "--stage",
    type=click.Choice([str(stage) for stage in Stage]),
    callback=options.member(Stage),
    help="Champion of this stage.",
)
_cluster = click.option("-M", "--cluster", metavar="NAME", help="Champion of this cluster [default: of all].")


@click.group(invoke_without_command=True)
@click.pass_context
def models(context: click.Context) -> None:
    """List, check and choose models."""
    if context.invoked_subcommand is None:
        context.invoke(list_)


@models.command("list")
@click.argument("detector", required=False)
@options.listing
@click.pass_obj
def list_(app: App, detector: str | None, listing: Listing) -> None:
    """List all versions, the oldest first."""
    registry = app.registry
    rows = [row for name in _detectors(registry, detector) for row in _rows(registry, name)]
    if listing.as_json:
        print_json(rows)
        return
    if not rows:
        say(f"there is no model in {app.home.models} yet")
        return
    listing.print_table(rows, _COLUMNS)


@models.command()
@click.argument("detector")
@click.argument("version", default="champion")
@_stage
@_cluster
@click.option("--out", metavar="FOLDER", help="Write charts of its curves (SVG) to FOLDER.")
@options.as_json
@click.pass_obj
def show(
    app: App,
    detector: str,
    version: str,
    stage: Stage | None,
    cluster: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Show the card of a VERSION, or of the champion."""
    registry = app.registry
    card = registry.card(detector, registry.resolve(detector, version, stage=stage, cluster=cluster))
    if out is not None:
        from tocsin.models.curves import draw_curves

        for path in draw_curves(*registry.open_verified(detector, card.version), Path(out)):
            say(f"wrote {path}")
    if as_json:
        print_json(card.to_json())
    else:
        _print_card(card, _aliases(registry, card))


@models.command()
@click.argument("detector")
@click.argument("version")
@_stage
@_cluster
@click.option("--why", default="by hand", metavar="TEXT", help="The reason, for the card.")
@options.as_json
@click.pass_obj
def promote(
    app: App,
    detector: str,
    version: str,
    stage: Stage | None,
    cluster: str | None,
    why: str,
    as_json: bool,
) -> None:
    """Make VERSION (or "challenger") the champion of its stage.

    A champion of one cluster (-M) is used there instead of the champion for all clusters.
    """
    registry = app.registry
    version = registry.resolve(detector, version, stage=stage, cluster=cluster)
    card = registry.card(detector, version)
    if stage and card.stage != stage:
        raise ModelError(f"{detector} {version} is a model for {card.stage}, not for {stage}")
    before = registry.champion(detector, card.stage, cluster)
    registry.promote(detector, version, cluster=cluster, why=why)
    _report(registry, detector, version, cluster, before, as_json)


@models.command()
@click.argument("detector")
@_stage
@_cluster
@click.option("--why", default="roll-back", metavar="TEXT", help="The reason, for the card.")
@options.as_json
@click.pass_obj
def rollback(
    app: App, detector: str, stage: Stage | None, cluster: str | None, why: str, as_json: bool
) -> None:
    """Return to the previous champion."""
    registry = app.registry
    before = registry.champion(detector, stage, cluster)
    version = registry.rollback(detector, stage, cluster=cluster, why=why)
    _report(registry, detector, version, cluster, before, as_json)


@models.command()
@click.argument("detector", required=False)
@click.argument("version", required=False)
@options.as_json
@click.pass_obj
def verify(app: App, detector: str | None, version: str | None, as_json: bool) -> None:
    """Compare every file with its hash; exit 1 with a sentence for each model that is not sound."""
    registry = app.registry
    if detector and version:
        wanted = [(detector, registry.resolve(detector, version))]
    else:
        wanted = [(name, v) for name in _detectors(registry, detector) for v in registry.versions(name)]
    results: list[dict[str, Any]] = []
    for name, v in wanted:
        try:
            registry.verify(name, v)
            trouble = None
        except ModelError as error:
            trouble = str(error)
        results.append({"detector": name, "version": v, "sound": trouble is None, "trouble": trouble})
    if as_json:
        print_json(results)
    bad = [result for result in results if not result["sound"]]
    for result in bad:
        say(f"tocsin: {result['trouble']}")
    if not bad:
        say(f"{count(len(results), 'model')} checked: every file is as it was written")
    raise SystemExit(1 if bad else 0)


def _report(
    registry: "Registry",
    detector: str,
    version: str,
    cluster: str | None,
    before: str | None,
    as_json: bool,
) -> None:
    stage = registry.card(detector, version).stage
    if as_json:
        found = {"detector": detector, "stage": str(stage), "cluster": cluster}
        print_json({**found, "champion": version, "before": before})
        return
    place = f"{stage} on {cluster}" if cluster else str(stage)
    if before == version:
        say(f"{detector} {version} is already the champion for {place}")
    else:
        say(f"{detector} {version} is now the champion for {place} (before: {before or 'none'})")


def _detectors(registry: "Registry", detector: str | None) -> list[str]:
    if detector is None:
        return registry.detectors()
    registry.resolve(detector, next(iter(registry.versions(detector)), "1"))  # an error if there is none
    return [detector]


def _rows(registry: "Registry", detector: str) -> list[dict[str, Any]]:
    """One row per version, also for a card that cannot be read."""
    rows = []
    for version in registry.versions(detector):
        row: dict[str, Any] = dict.fromkeys(
            ("aliases", "stage", "target", "operations", "clusters", "engine", "rows", "created", "trouble")
        )
        row |= {"detector": detector, "version": version, "aliases": []}
        try:
            card = registry.card(detector, version)
            row |= {
                "aliases": _aliases(registry, card),
                "stage": str(card.stage),
                "target": card.target,
                "operations": list(card.operations),
                "clusters": list(card.clusters),
                "engine": card.engine,
                "rows": card.rows,
                "created": format_instant(card.created),
            }
        except ModelError as error:
            row["trouble"] = str(error)
        rows.append(row)
    return rows


def _aliases(registry: "Registry", card: "Card") -> list[str]:
    """The names of this version: `champion` for all clusters, `champion@lab` for one."""
    aliases = registry.aliases(card.detector)
    clusters = sorted((cluster for stage, cluster in aliases if stage is card.stage and cluster), key=str)
    names = []
    for cluster in (None, *clusters):
        own = aliases.get((card.stage, cluster))
        held = {
            "champion": own.champion if cluster and own else registry.champion(card.detector, card.stage),
            "challenger": own.challenger if own else None,
        }
        names += [
            f"{name}@{cluster}" if cluster else name
            for name, version in held.items()
            if version == card.version
        ]
    return names


_COLUMNS = [
    Column("Detector", lambda row: row["detector"], -12),
    Column("Version", lambda row: row["version"], 7),
    Column("Alias", lambda row: ",".join(row["aliases"]), -10),
    Column("Stage", lambda row: row["stage"] or "", -7),
    Column("Target", lambda row: row["target"] or ",".join(row["operations"] or ()), -12),
    Column("Engine", lambda row: row["engine"] or "cannot be read", -14),
    Column("Rows", lambda row: "" if row["rows"] is None else str(row["rows"]), 10),
    Column("Created", lambda row: row["created"] or "", -20),
]


def _print_card(card: "Card", aliases: list[str]) -> None:
    def line(name: str, value: object) -> None:
        if value not in (None, "", []):
            click.echo(f"{name:<12} {value}")

    line("model", f"{card.detector} {card.version}" + (f" ({', '.join(aliases)})" if aliases else ""))
    line("stage", card.stage)
    line("target", card.target)
    line("operations", ", ".join(card.operations))
    line("clusters", ", ".join(card.clusters))
    line("engine", card.engine)
    line("created", f"{format_instant(card.created)} by tocsin {card.tocsin}")
    if card.window:
        line("window", f"{format_instant(card.window.first)} to {format_instant(card.window.last)}")
    line("rows", f"{card.rows:,}")
    line("data", card.data_hash)
    line("features", f"{len(card.features)}: {', '.join(card.features)}" if card.features else "")
    line("parameters", ", ".join(f"{name}={value}" for name, value in card.parameters.items()))
    line("calibration", (card.calibration or {}).get("kind"))
    line("parent", card.parent)
    for threshold in card.thresholds:
        line(
            "threshold", ", ".join(f"{key} {value}" for key, value in threshold.items() if value is not None)
        )
    for figure in card.figures:
        value = figure.reason if figure.value is None else f"{figure.value:.4f}"
        interval = "" if figure.low is None else f" [{figure.low:.4f}, {figure.high:.4f}]"
        line("figure", f"{figure.name} {value}{interval} at {figure.stage}, {figure.split}, {figure.data}")
    for promotion in card.promotions:
        place = f" on {promotion.cluster}" if promotion.cluster else ""
        when = format_instant(promotion.at)
        line("promoted", f"{when}{place}, replaced {promotion.replaced or 'none'}: {promotion.why}")
    for name, digest in card.files.items():
        line("file", f"{name} sha256 {digest}")
