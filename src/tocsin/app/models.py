"""`models`: list, show, draw and verify the versions of each detector's models."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.champions import ModelRequest, card_of
from tocsin.core.errors import ModelError, NotFound

if TYPE_CHECKING:
    from tocsin.app.learning import LiveMeasurement
    from tocsin.models.cards import Card
    from tocsin.models.registry import Registry

__all__ = ["list_models", "show_model", "verify_models", "write_charts"]


def list_models(
    app: App, detector: str | None, measured: "LiveMeasurement | None" = None
) -> list[dict[str, Any]]:
    """One row for each version, including those with an unreadable card, with live figures as far as measured."""
    rows = [row for name in _detectors(app.registry, detector) for row in _rows(app.registry, name)]
    return [{**row, "live": _live(measured, row["detector"], row["version"])} for row in rows]


def show_model(app: App, model: ModelRequest, measured: "LiveMeasurement | None" = None) -> dict[str, Any]:
    """The card of a version, with its aliases, and live figures as far as measured."""
    card = card_of(app.registry, model)
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

    card = card_of(app.registry, model)
    return list(draw_curves(*app.registry.open_verified(model.detector, card.version), folder))


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
