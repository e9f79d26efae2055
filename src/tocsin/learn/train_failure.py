"""A training run: a failure model from jobs that are known, kept in the registry with its card."""

import time
from dataclasses import dataclass, replace

import polars as pl

from tocsin.core.detector import Budget, Known
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import NAME, FittedFailure
from tocsin.models.cards import Card
from tocsin.models.registry import Registry
from tocsin.models.thresholds import ThresholdRule

__all__ = ["TrainedFailure", "set_rule", "train_failure"]


@dataclass(frozen=True, slots=True)
class TrainedFailure:
    """A model and the version that it became."""

    version: str
    model: FittedFailure
    card: Card
    in_service: bool


def train_failure(
    jobs: pl.DataFrame,
    past: Known,
    registry: Registry,
    detector: FailureDetector,
    *,
    stage: Stage,
    budget: Budget,
    seed: int = 0,
    promote: bool = True,
    cluster: str | None = None,
) -> TrainedFailure:
    """Learn from these jobs; put it in service, or keep it as one that was only trained."""
    fitted = detector.fit(jobs, past, stage=stage, seed=seed, budget=budget)
    return _kept(registry, fitted, promote=promote, why="trained", parent=None, cluster=cluster)


def set_rule(
    registry: Registry, model: FittedFailure, rule: ThresholdRule, *, parent: str, cluster: str | None = None
) -> TrainedFailure:
    """The champion with another threshold, as a new version: a version never changes."""
    ruled = model.with_rule(rule)
    return _kept(registry, ruled, promote=True, why=f"threshold: {rule}", parent=parent, cluster=cluster)


def _kept(
    registry: Registry,
    fitted: FittedFailure,
    *,
    promote: bool,
    why: str,
    parent: str | None,
    cluster: str | None,
) -> TrainedFailure:
    now = int(time.time())
    card = replace(fitted.card(created=now), parent=parent)
    version = registry.add(NAME, fitted.save, card)
    if promote:
        registry.promote(NAME, version, cluster=cluster, why=why, at=now)
    return TrainedFailure(version, fitted, card, promote)
