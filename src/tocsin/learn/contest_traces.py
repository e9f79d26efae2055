"""The contest of the trace models: error on normal windows of the held-back days."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.learn.comparison import Measure
from tocsin.learn.contest import Champion, Night, Trained
from tocsin.models.drift import Drift, stability
from tocsin.models.splits import DAY
from tocsin.store.trace_regions import confirmed_anomalies
from tocsin.traces.detector import DETECTOR, TracesDetector
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.model_card import model_card
from tocsin.traces.windows import Windows

__all__ = ["NormalWindows", "ReadWindows", "TracesContest"]

TRAIN_DAYS = 7
"""Days of windows before the held-back ones on which a challenger is trained."""
_SAMPLE = 20_000
"""This many windows are enough to see drift and to compare on."""


@dataclass(frozen=True, slots=True)
class NormalWindows:
    """Windows of jobs that raised no alarm and that nobody confirmed as anomalous."""

    windows: pl.DataFrame
    """As `core.frames.WINDOWS`."""
    jobs: pl.DataFrame
    """`job`, `user` and `name`."""


ReadWindows = Callable[[Sequence[str], int, int], NormalWindows]
"""The windows of some clusters that end after the first instant, up to and including the second."""


@dataclass(frozen=True, slots=True)
class TracesContest:
    read: ReadWindows
    detector: TracesDetector = DETECTOR
    stages: Sequence[Stage] = (Stage.RUNNING,)
    figure: str = "cpus.error"
    higher_is_better: bool = False

    def prepare(self, champion: Champion, night: Night) -> "TracesMatch":
        """Hold back the windows of jobs that started in the last days. A confirmed anomaly that day stops the contest."""
        if bad := confirmed_anomalies(night.store, night.now - DAY, night.now + 1):
            raise ModelError(
                f"an anomaly was confirmed in the last 24 hours ({', '.join(bad[:3])}), so traces are not retrained today"
            )
        model = self.detector.load(champion.folder)
        cut = night.now - round(night.holdback_days * DAY)
        if cut <= model.window.last:
            raise ModelError(
                f"it was trained on windows up to {format_instant(model.window.last)}, and what came after "
                f"{format_instant(cut)} is held back, so there is nothing new to train on yet"
            )
        found = self.read(champion.card.clusters, cut - TRAIN_DAYS * DAY, night.now)
        past = found.windows.filter(pl.col("at") <= cut)
        later = found.windows.filter(pl.col("at") > cut).join(past, on="job", how="anti")
        held = model.cpus.windows(later.sort("job", "node", "cpu", "at"))
        if not len(held) or not past.height:
            raise ModelError(
                f"{past.height:,} windows of normal jobs end in the {TRAIN_DAYS} days before {format_instant(cut)}, and "
                f"{len(held):,} after it; both are needed: run `tocsin traces watch`"
            )
        return TracesMatch(
            self.detector, champion, night, model, past, found.jobs, held[:: 1 + len(held) // _SAMPLE], cut
        )


@dataclass(frozen=True, slots=True)
class TracesMatch:
    detector: TracesDetector
    champion: Champion
    night: Night
    model: FittedTraces
    """The champion."""
    past: pl.DataFrame
    jobs: pl.DataFrame
    held: Windows
    cut: int

    @property
    def held_back(self) -> str:
        jobs = self.held.index["job"].n_unique()
        return f"{len(self.held):,} windows of {jobs:,} normal jobs since {format_instant(self.cut)}"

    @property
    def blocks(self) -> NDArray[Any]:
        """The windows of one job are alike."""
        return self.held.index["job"].to_numpy()

    def retrain(self) -> Trained:
        """With the champion's architecture, seeds, rule and time limit."""
        shown = self.champion.card.parameters
        seed, seconds = int(shown.get("seed") or 0), shown.get("seconds")
        ensemble = int(shown.get("ensemble") or 1)
        detector = replace(
            self.detector,
            architecture=self.champion.card.engine,
            ensemble=ensemble,
            rule=self.model.cpus.thresholds.rule,
        )
        fitted = detector.fit_windows(
            self.past,
            self.jobs,
            stride=self.model.stride,
            interval=self.model.interval,
            seed=seed,
            seconds=seconds,
            progress=self.night.progress,
        )
        card = model_card(
            fitted,
            created=self.night.now,
            data="stored traces",
            parameters={"ensemble": ensemble, "seed": seed, "seconds": seconds},
        )
        return Trained(fitted.save, card)

    def refused(self, challenger: Path) -> str | None:  # noqa: ARG002  # no rule beside the contest
        return None

    def compare(self, champion: Path, challenger: Path) -> Measure:
        one, other = (
            self.detector.load(folder).cpus.model.score(self.held).error.astype(np.float64)
            for folder in (champion, challenger)
        )
        return lambda weight: (
            float(np.average(one, weights=weight)),
            float(np.average(other, weights=weight)),
        )

    def drift(self) -> list[Drift]:
        """The mean of each channel: in the champion's training windows that are still stored, and in the held-back ones."""
        rows = self.past.filter(pl.col("at") <= self.model.window.last)
        then = self.model.cpus.windows(rows[:: 1 + rows.height // _SAMPLE])
        if not len(then):
            return []
        before, after = (windows.values.mean(axis=1) for windows in (then, self.held))
        return [
            Drift(
                name=name,
                then=float(before[:, place].mean()),
                now=float(after[:, place].mean()),
                stability=stability(before[:, place], after[:, place]),
            )
            for place, name in enumerate(self.held.channels)
        ]
