"""Trains a trace detector and stores it in the registry with its card."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from tocsin.models.cards import Card, Figure
from tocsin.models.registry import Registry
from tocsin.traces.alarms import NAME
from tocsin.traces.detector import TracesDetector
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.model_card import model_card

__all__ = ["TrainedTraces", "train_traces"]


@dataclass(frozen=True, slots=True)
class TrainedTraces:
    """A detector and its version in the registry."""

    version: str
    model: FittedTraces
    card: Card
    promoted: bool


def train_traces(
    windows: pl.DataFrame,
    kinds: pl.DataFrame,
    registry: Registry,
    detector: TracesDetector,
    *,
    data: str,
    stride: int,
    interval: int = 1,
    seed: int = 0,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    measure: Callable[[FittedTraces], list[Figure]] = lambda _: [],
    promote: bool = True,
    cluster: str | None = None,
    why: str = "trained",
    unless_held: bool = False,
) -> TrainedTraces:
    """Train on the windows of normal jobs; `kinds` has `job`, `user` and `name` of each. `promote` uses it from now on."""
    fitted = detector.fit_windows(
        windows, kinds, stride=stride, interval=interval, seed=seed, seconds=seconds, progress=progress
    )
    now = int(time.time())
    card = model_card(
        fitted,
        created=now,
        data=data,
        parameters={"ensemble": detector.ensemble, "seed": seed, "seconds": seconds},
        measured=measure(fitted),
    )
    version = registry.add(NAME, fitted.save, card, unless_stored=True)
    in_use = promote and registry.promote(
        NAME, version, cluster=cluster, why=why, at=now, unless_held=unless_held
    )
    return TrainedTraces(version, fitted, card, in_use)
