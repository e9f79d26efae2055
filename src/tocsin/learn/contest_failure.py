"""The contest of the failure model: average precision on the last days, which neither model was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget, Known
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.labels import failed
from tocsin.failure.model_card import model_card
from tocsin.failure.shipped import shipped_model
from tocsin.history.replay import Replay
from tocsin.judge.answers import as_known
from tocsin.learn.comparison import Measure, Result
from tocsin.learn.contest import Champion, Night, Trained
from tocsin.learn.feedback import with_answers
from tocsin.learn.held_back import FIGURE, HeldBack, counted, hold_back, measure_both
from tocsin.learn.live_figures import Live
from tocsin.learn.recent_scores import recent_scores, weighed_at
from tocsin.learn.train_failure import SHORTEST
from tocsin.models.drift import Drift, stability
from tocsin.store.jobs import Filter, load

__all__ = ["FailureContest"]

_FEATURES = 5
"""The champion's most important features, watched for drift."""
_MOST_THEN = 20_000
"""The latest training jobs of the champion are enough to see drift."""


@dataclass(frozen=True, slots=True)
class FailureContest:
    stages: Sequence[Stage] = (Stage.SUBMIT, Stage.START, Stage.EARLY)
    figure: str = FIGURE
    higher_is_better: bool = True
    prefers_fresh: bool = True
    """Three days of KTH-SP2 are some 250 jobs: with confidence, only 9 of 46 weekly models were shown to be no worse.
    AUC was the same with these as with all 46 (0.828), but recall at the promised precision fell from 0.19 to 0.05."""

    def prepare(self, champion: Champion, night: Night) -> "FailureMatch":
        """The jobs of the champion's clusters; those submitted in the last days are held back."""
        jobs = load(night.store, Filter(clusters=list(champion.card.clusters)))
        model = FailureDetector(threads=night.threads).load(champion.folder)
        labelled = with_answers(night.store, jobs).filter(
            pl.col("known_at") <= night.now,
            pl.col("submit") <= night.now,
            (pl.col("elapsed") >= champion.card.parameters.get(SHORTEST, 0)).fill_null(True),
        )
        labelled = labelled.filter(
            counted(labelled, model.target), reached_at(champion.stage).is_not_null()
        ).sort("submit", "job_id", "task", nulls_last=False)
        if labelled.is_empty():
            raise ModelError("no job has a known outcome; run `tocsin watch`, or import newer jobs")
        back = hold_back(
            labelled, days=night.holdback_days, trained_until=model.window.last, target=model.target
        )
        return FailureMatch(champion, night, model, Replay(jobs), labelled, back)

    def live(self, champion: Champion, challenger: str, night: Night) -> Result:
        """On the jobs of the champion's cluster."""
        clusters = [champion.cluster] if champion.cluster else list(champion.card.clusters)
        if len(clusters) != 1:
            raise ModelError("live jobs of several clusters are not compared together")
        [cluster] = clusters
        live = Live(night.store, cluster, now=night.now, share=night.control_share)
        return live.compared(champion.detector, champion.stage, champion.version, challenger)


@dataclass
class FailureMatch:
    champion: Champion
    night: Night
    model: FittedFailure
    """The champion."""
    known: Known
    labelled: pl.DataFrame
    """All jobs with a known outcome."""
    back: HeldBack

    @property
    def held_back(self) -> str:
        return self.back.text

    def retrain(self) -> Trained:
        """With the champion's target, engine, threshold rule, time zone, seed and number of trials."""
        plan, rule, shown = (
            self.model.plan,
            self.model.calibrated.threshold.rule,
            self.champion.card.parameters,
        )
        detector = FailureDetector(
            rule=rule or FailureDetector().rule,
            target=self.model.target,
            engine=self.model.engine,
            zone=self.model.columns.zone,
            threads=self.night.threads,
            shipped=shipped_model(self.champion.stage),
        )
        fitted = detector.fit(
            self.back.past,
            self.known,
            stage=self.champion.stage,
            seed=int(plan.search["seed"]),
            budget=Budget(trials=len(plan.search["trials"]), progress=self.night.progress),
        )
        fitted = fitted.weighed_by(recent_scores(self.model, self.labelled, self.known))
        card = model_card(fitted, created=self.night.now, parent=self.champion.version)
        more = {SHORTEST: shown[SHORTEST]} if SHORTEST in shown else {}
        return Trained(fitted.save, replace(card, parameters={**card.parameters, **more}))

    def refused(self, challenger: Path) -> str | None:  # noqa: ARG002  # no rule beside the contest
        return None

    @property
    def blocks(self) -> NDArray[Any]:
        return self.back.blocks

    def compare(self, champion: Path, challenger: Path) -> Measure:
        detector = FailureDetector(threads=self.night.threads)
        new = detector.load(challenger)
        new = weighed_at(new, new.recent, self.back.cut)
        one, other = (self._probabilities(model) for model in (detector.load(champion), new))
        return measure_both(self.back.held, one, other)

    def drift(self) -> list[Drift]:
        then = self.back.past.filter(
            pl.col("submit").is_between(self.model.window.first, self.model.window.last)
        )
        then = then.tail(_MOST_THEN)
        rates = [float(failed(jobs).mean()) if jobs.height else None for jobs in (then, self.back.held)]
        weights = self.model.plan.importances
        names = sorted(self.model.columns.names, key=lambda name: -weights.get(name, 0.0))[:_FEATURES]
        columns = self.model.columns.only(tuple(names))
        stage = self.champion.stage
        before, after = (
            columns.matrix(
                as_known(jobs, stage), history_features(as_known(jobs, stage), self.known, stage=stage)
            )
            for jobs in (then, self.back.held)
        )
        moved = [
            Drift(name=name, stability=stability(before[:, place], after[:, place]))
            for place, name in enumerate(names)
        ]
        return [Drift(name=f"share {self.model.target}", then=rates[0], now=rates[1]), *moved]

    @cached_property
    def _history(self) -> pl.DataFrame:
        return history_features(self._visible, self.known, stage=self.champion.stage)

    @cached_property
    def _visible(self) -> pl.DataFrame:
        return as_known(self.back.held, self.champion.stage)

    def _probabilities(self, model: FittedFailure) -> NDArray[np.float64]:
        return model.probabilities(self._visible, self._history)
