"""Which versions of models are in use: promote, challenge, roll back, and whose model that concerns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.models.cards import Card
    from tocsin.models.registry import Registry

__all__ = ["ModelRequest", "card_of", "challenge", "chosen_cluster", "promote", "rollback"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """A version of a detector's models, by its number or as champion or challenger of a stage and cluster."""

    detector: str
    version: str = "champion"
    stage: Stage | None = None
    cluster: str | None = None


def card_of(registry: "Registry", model: ModelRequest) -> "Card":
    """The card of the version that is asked for."""
    version = registry.resolve(model.detector, model.version, stage=model.stage, cluster=model.cluster)
    return registry.card(model.detector, version)


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
    card = card_of(registry, model)
    if model.stage and card.stage != model.stage:
        raise ModelError(f"{detector} {card.version} is a model for {card.stage}, not for {model.stage}")
    cluster = chosen_cluster(app, detector, card.stage, model.cluster)
    before = registry.champion(detector, card.stage, cluster)
    registry.promote(detector, card.version, cluster=cluster, why=why)
    return _change(detector, card.stage, card.version, cluster, before)


def challenge(app: App, model: ModelRequest, *, end: bool = False) -> dict[str, Any]:
    """Let a version run beside the champion of its stage on live jobs; with `end`, stop that."""
    registry, detector, cluster = app.registry, model.detector, model.cluster
    card = card_of(registry, model)
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
    stage = model.stage or registry.only_stage(detector)
    cluster = chosen_cluster(app, detector, stage, model.cluster)
    before = registry.champion(detector, stage, cluster)
    version = registry.rollback(detector, stage, cluster=cluster, to_none=to_none, why=why)
    return _change(detector, stage, version, cluster, before)


def _change(
    detector: str, stage: Stage, version: str | None, cluster: str | None, before: str | None
) -> dict[str, Any]:
    place = {"detector": detector, "stage": str(stage), "cluster": cluster}
    return {**place, "champion": version, "before": before}
