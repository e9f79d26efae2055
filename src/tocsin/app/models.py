"""`models`: list, show, promote, roll back and verify the versions of each detector's models."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.app.learning import LiveMeasurement
    from tocsin.models.cards import Card
    from tocsin.models.registry import Registry

__all__ = [
    "ModelRequest",
    "challenge",
    "chosen_cluster",
    "list_models",
    "promote",
    "rollback",
    "show_model",
    "verify_models",
    "write_charts",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A version of a detector's models, by its number or as champion or challenger of a stage and cluster."""

    detector: str
    version: str = "champion"
    stage: Stage | None = None
    cluster: str | None = None


def list_models(
    app: App, detector: str | None, measured: "LiveMeasurement | None" = None
) -> list[dict[str, Any]]:
    """One row for each version, including those with an unreadable card, with live figures as far as measured."""
    rows = [row for name in _detectors(app.registry, detector) for row in _rows(app.registry, name)]
    return [{**row, "live": _live(measured, row["detector"], row["version"])} for row in rows]


def show_model(app: App, model: ModelRequest, measured: "LiveMeasurement | None" = None) -> dict[str, Any]:
    """The card of a version, with its aliases, and live figures as far as measured."""
    card = _card(app.registry, model)
    live = _live(measured, card.detector, card.version)
    return {**card.to_json(), "aliases": _aliases(app.registry, card), "live": live}


def _live(measured: "LiveMeasurement | None", detector: str, version: str) -> list[Any]:
    """One for each cluster and stage on which the version scored jobs."""
    if measured is None:
        return []
    return [row for row in measured.figures if (row["detector"], row["version"]) == (detector, version)]


def write_charts(app: App, model: ModelRequest, folder: Path) -> list[Path]:
    """Draw the curves of a version; returns the files."""
    from tocsin.models.curves import draw_curves

    card = _card(app.registry, model)
    return list(draw_curves(*app.registry.open_verified(model.detector, card.version), folder))


def chosen_cluster(app: App, detector: str, stage: Stage, cluster: str | None) -> str | None:
    """The named cluster, else the store's only one if a model of its own is in use there, else None: all clusters.

    Notes clusters with models of their own, which what is done for all clusters does not concern.
    """
    from tocsin.store.jobs import cluster_names

    if cluster is not None:
        return cluster
    aliases = app.registry.aliases(detector)
    own = sorted(name for (of, name), each in aliases.items() if of is stage and name and each.champion)
    if len(own) == 1 and own == cluster_names(app.store):
        return own[0]
    if own:
        app.notify(f"note: models of their own are in use on {', '.join(own)}; name one of them with -M")
    return None


def promote(app: App, model: ModelRequest, why: str) -> dict[str, Any]:
    """Make a version the champion of its stage, for one cluster or for all."""
    registry, detector = app.registry, model.detector
    card = _card(registry, model)
    if model.stage and card.stage != model.stage:
        raise ModelError(f"{detector} {card.version} is a model for {card.stage}, not for {model.stage}")
    cluster = chosen_cluster(app, detector, card.stage, model.cluster)
    before = registry.champion(detector, card.stage, cluster)
    registry.promote(detector, card.version, cluster=cluster, why=why)
    return _change(detector, card.stage, card.version, cluster, before)


def challenge(app: App, model: ModelRequest, *, end: bool = False) -> dict[str, Any]:
    """Let a version run beside the champion of its stage on live jobs; with `end`, stop that."""
    registry, detector, cluster = app.registry, model.detector, model.cluster
    card = _card(registry, model)
    if model.stage and card.stage != model.stage:
        raise ModelError(f"{detector} {card.version} is a model for {card.stage}, not for {model.stage}")
    before = registry.challenger(detector, card.stage, cluster)
    if not end and card.version == registry.champion(detector, card.stage, cluster):
        raise ModelError(f"{detector} {card.version} is in use at {card.stage}; it cannot run beside itself")
    version = None if end else card.version
    registry.challenge(detector, version, card.stage, cluster=cluster)
    place = {"detector": detector, "stage": str(card.stage), "cluster": cluster}
    return {**place, "challenger": version, "before": before}


def rollback(app: App, model: ModelRequest, why: str, *, to_none: bool = False) -> dict[str, Any]:
    """Return to the previous champion; with `to_none`, to the shipped model or none."""
    registry, detector = app.registry, model.detector
    before = registry.resolve(detector, "champion", stage=model.stage, cluster=model.cluster)
    stage = registry.card(detector, before).stage
    cluster = chosen_cluster(app, detector, stage, model.cluster)
    before = registry.resolve(detector, "champion", stage=stage, cluster=cluster)
    version = registry.rollback(detector, stage, cluster=cluster, to_none=to_none, why=why)
    return _change(detector, stage, version, cluster, before)


def verify_models(app: App, detector: str | None, version: str | None) -> list[dict[str, Any]]:
    """Compare every file of these versions with its hash, and load them; an error is reported as `trouble`."""
    from tocsin.judge.plugins import find_detectors

    registry, detectors = app.registry, find_detectors()
    if detector and version:
        wanted = [(detector, registry.resolve(detector, version))]
    else:
        wanted = [(name, v) for name in _detectors(registry, detector) for v in registry.versions(name)]
    results = []
    for name, v in wanted:
        try:
            folder, _ = registry.open_verified(name, v)
            if name in detectors:
                detectors[name].load(folder)
            trouble = None
        except ModelError as error:
            trouble = str(error)
        except Exception as error:  # a plug-in may fail in any way
            trouble = f"{name} {v} cannot be loaded ({type(error).__name__}: {error}); train it again"
        results.append({"detector": name, "version": v, "sound": trouble is None, "trouble": trouble})
    return results


def _card(registry: "Registry", model: ModelRequest) -> "Card":
    version = registry.resolve(model.detector, model.version, stage=model.stage, cluster=model.cluster)
    return registry.card(model.detector, version)


def _change(
    detector: str, stage: Stage, version: str | None, cluster: str | None, before: str | None
) -> dict[str, Any]:
    place = {"detector": detector, "stage": str(stage), "cluster": cluster}
    return {**place, "champion": version, "before": before}


def _detectors(registry: "Registry", detector: str | None) -> list[str]:
    if detector is None:
        return registry.detectors()
    if not registry.versions(detector):
        raise NotFound(
            f'no detector "{detector}" with models; detectors with models: {", ".join(registry.detectors())}'
        )
    return [detector]


_CARD = ("stage", "target", "operations", "clusters", "engine", "rows", "created")


def _rows(registry: "Registry", detector: str) -> list[dict[str, Any]]:
    rows = []
    for version in registry.versions(detector):
        row: dict[str, Any] = {"detector": detector, "version": version, "aliases": [], "trouble": None}
        row |= dict.fromkeys(_CARD)
        try:
            card = registry.card(detector, version)
            document = card.to_json()
            row |= {"aliases": _aliases(registry, card), **{name: document[name] for name in _CARD}}
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
