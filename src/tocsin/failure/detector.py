"""The detector `failure`: the probability that a job fails, with a finding from the threshold on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from tocsin.core.detector import Budget, Known, Need
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.causes import base_causes
from tocsin.failure.columns import Columns
from tocsin.failure.experience import Experience
from tocsin.failure.explainers import Explainers
from tocsin.failure.findings import NAME
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.holdout import Holdout, calibrated, rehearsed
from tocsin.failure.labels import default_target, trainable
from tocsin.failure.model_training import train
from tocsin.failure.plan import Plan
from tocsin.failure.resources import ResourceModel
from tocsin.failure.shortages import Shortages
from tocsin.models.cards import Window
from tocsin.models.engines import engine
from tocsin.models.thresholds import ThresholdRule

__all__ = ["DETECTOR", "FailureDetector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDetector:
    """How to train; the result is a FittedFailure."""

    name: str = NAME
    stages: Sequence[Stage] = (Stage.SUBMIT, Stage.START, Stage.EARLY)
    learns: bool = True
    needs: Collection[Need] = (Need.HISTORY, Need.SCRIPTS, Need.MACHINE)
    target: Target | None = None
    """None: `unsuccessful` for archives in SWF, `failed` for everything else."""
    rule: ThresholdRule = field(default_factory=lambda: ThresholdRule("precision_at_least", 0.8))
    engine: str = "lightgbm"
    zone: str = "UTC"
    """The cluster's time zone, for local hours and weekdays."""
    threads: int = 1
    plan: Plan | None = None
    """From an earlier training; otherwise, training searches for it."""
    resources: ResourceModel | None = None
    """From an earlier training by the same plan, to be recalibrated; otherwise, it is trained."""
    explainers: bool = True
    """Whether to fit what only explanations need."""
    shipped: FittedFailure | None = None
    """Experience from other clusters, to be blended with what is learned here; for the same stage."""

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> FittedFailure:
        """Train on the jobs with a known outcome; pass only what was known when the model is made."""
        _check_zone(self.zone)
        target = self.target or default_target(jobs)
        rows = trainable(jobs, target, stage)
        history = history_features(rows, known, stage=stage)
        columns, X = Columns.fit(
            rows,
            history,
            stage=stage,
            zone=self.zone,
            settled=self.plan.names if self.plan else None,
        )
        found = engine(self.engine)
        plan, holdout, booster, X = train(
            found,
            X,
            columns.names,
            rows,
            plan=self.plan,
            seed=seed,
            budget=budget,
            threads=self.threads,
        )
        experience = None
        if self.shipped is not None:
            shipped = self.shipped.for_target(target)
            experience = Experience(shipped.columns, shipped.booster)
            holdout = _with_experience(shipped, rows, history, holdout)
        submit = rows["submit"].to_numpy()
        return FittedFailure(
            columns=columns.only(plan.names),
            target=target,
            engine=self.engine,
            booster=booster,
            plan=plan,
            holdout=holdout,
            calibrated=calibrated(holdout, rule=self.rule),
            rehearsal=rehearsed(holdout, rule=self.rule),
            causes=base_causes(rows["outcome"], target),
            window=Window(first=int(submit[0]), last=int(submit[-1])),
            rows=rows.height,
            clusters=tuple(rows["cluster"].unique().sort()),
            resources=self.resources.recalibrated(X, rows)
            if self.resources
            else ResourceModel.fit(X, rows, seed=seed, threads=self.threads),
            shortages=Shortages.fit(rows),
            explainers=Explainers.fit(X, rows, plan, seed=seed) if self.explainers else None,
            experience=experience,
        )

    def load(self, folder: Path) -> FittedFailure:
        return FittedFailure.load(folder, threads=self.threads)


def _with_experience(
    shipped: FittedFailure, jobs: pl.DataFrame, history: pl.DataFrame, holdout: Holdout
) -> Holdout:
    """The holdout with the scores that other clusters' experience gives its jobs, which are the last ones."""
    held = len(holdout.scores)
    assert np.array_equal(jobs["submit"].tail(held).to_numpy(), holdout.submit), "the last jobs are held out"
    X = shipped.columns.matrix(jobs.tail(held), history.tail(held))
    return replace(holdout, others=shipped.booster.predict(X))


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError):
        raise ModelError(f'"{zone}" is not a time zone; give a name such as Europe/Rome') from None


DETECTOR = FailureDetector()
