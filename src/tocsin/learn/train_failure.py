"""Train a failure model, or set its threshold, and store it in the registry with its card."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from tocsin.core.detector import Budget, Known
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.findings import NAME
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.model_card import model_card
from tocsin.models.cards import Card
from tocsin.models.registry import Registry
from tocsin.models.thresholds import ThresholdRule

__all__ = ["SHORTEST", "TrainedFailure", "set_rule", "train_failure"]

SHORTEST = "shortest_seconds"
"""A parameter on the card: jobs that ran for less were left out."""


@dataclass(frozen=True, slots=True)
class TrainedFailure:
    """A model and its version in the registry."""

    version: str
    model: FittedFailure
    card: Card


def train_failure(
    jobs: pl.DataFrame,
    known: Known,
    registry: Registry,
    detector: FailureDetector,
    *,
    stage: Stage,
    budget: Budget,
    seed: int = 0,
    promote: bool = True,
    cluster: str | None = None,
    shortest: int = 0,
) -> TrainedFailure:
    """Train on these jobs and store the model; `promote` uses it from now on, for one cluster or all.

    `shortest` is written to the card: jobs that ran for fewer seconds were left out.
    """
    fitted = detector.fit(jobs, known, stage=stage, seed=seed, budget=budget)
    more = {SHORTEST: shortest} if shortest else {}
    return _store(
        registry, fitted, promote=promote, why="trained", parent=None, cluster=cluster, parameters=more
    )


def set_rule(
    registry: Registry, model: FittedFailure, rule: ThresholdRule, *, parent: str, cluster: str | None = None
) -> TrainedFailure:
    """The champion with another threshold, as a new version: a version never changes."""
    ruled = model.with_rule(rule)
    known = registry.card(NAME, parent).parameters
    return _store(
        registry,
        ruled,
        promote=True,
        why=f"threshold: {rule}",
        parent=parent,
        cluster=cluster,
        parameters={SHORTEST: known[SHORTEST]} if SHORTEST in known else {},
    )


def _store(
    registry: Registry,
    fitted: FittedFailure,
    *,
    promote: bool,
    why: str,
    parent: str | None,
    cluster: str | None,
    parameters: Mapping[str, int],
) -> TrainedFailure:
    now = int(time.time())
    card = model_card(fitted, created=now, parent=parent)
    card = replace(card, parameters={**card.parameters, **parameters})
    version = registry.add(NAME, fitted.save, card, unless_stored=True)
    if promote:
        registry.promote(NAME, version, cluster=cluster, why=why, at=now)
    return TrainedFailure(version, fitted, card)
