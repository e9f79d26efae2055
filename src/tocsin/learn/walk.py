"""A walk through time: train on what was known, predict the next days, move on to the end of the log."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget, Known
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.holdout import Holdout
from tocsin.failure.labels import FEWEST, failed, mature
from tocsin.failure.node_hours import node_hours
from tocsin.failure.resources import KINDS, ResourceModel
from tocsin.history.remembered import Remembered
from tocsin.models.engines import Matrix
from tocsin.models.splits import NEVER, Step, walk

__all__ = ["SEARCH_EVERY", "StepResult", "Walk", "WalkRequest", "counted"]

SEARCH_EVERY = 12
"""Trainings from one search to the next; those between refit by the plan that it settled."""
CALIBRATED_ON = 10_000
"""The latest predictions whose outcome is known calibrate the next ones."""
FEWEST_CALIBRATED = 500
FIRST = 0.2
NEEDS_EVERY = 4
"""Trainings from one model of run times to the next."""
NEEDS_ROWS = 60_000
RUNTIME = KINDS[0].name


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkRequest:
    """How to walk."""

    stage: Stage = Stage.SUBMIT
    every_days: float = 7
    train_days: float | None = None
    """None: all that is known."""
    budget: Budget = field(default_factory=lambda: Budget(trials=4))
    """Of each search."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: the jobs that were asked about, and what was said of them."""

    step: Step
    jobs: pl.DataFrame
    probability: NDArray[np.float64]
    threshold: float
    bound: NDArray[np.float64]
    """The run time that 95 of 100 jobs keep to; NaN where it could not be told."""
    searched: bool
    met: bool = True
    """Whether the threshold meets the operator's rule."""
    refused: str | None = None
    """Why there was no model: then the probability is the share of failures so far."""


class Walk:
    """Its steps, one by one; what a step learns the next ones know."""

    def __init__(
        self,
        jobs: pl.DataFrame,
        past: Known,
        detector: FailureDetector,
        request: WalkRequest,
        start: int | None = None,
    ) -> None:
        """`start`: the instant of the first prediction; without it, after the first fifth of the jobs."""
        if detector.target is None:
            raise ModelError("a walk needs a target: its jobs may not choose it by what becomes known later")
        self.jobs = jobs.filter(reached_at(request.stage).is_not_null()).sort(
            "submit", "job_id", "task", nulls_last=False
        )
        if start is None and self.jobs.height < FEWEST:
            raise ModelError(
                f"{self.jobs.height:,} of {jobs.height:,} jobs came to {request.stage}; a walk needs at least {FEWEST}: "
                "read a longer log"
            )
        self.past = Remembered(past, self.jobs, stage=request.stage)
        self.detector = replace(detector, explained=False)
        self.request = request
        submit = self.jobs["submit"].to_numpy()
        known = self.jobs.select(
            pl.when(pl.col("outcome").is_not_null()).then("known_at").fill_null(NEVER)
        ).to_series()
        self.steps = list(
            walk(
                submit,
                known.to_numpy(),
                first=FIRST,
                start=start,
                every_days=request.every_days,
                train_days=request.train_days,
            )
        )
        self._labelled = counted(self.jobs, detector.target)
        self._known = known.to_numpy()
        self._scores = np.full(self.jobs.height, np.nan)
        self._needs: ResourceModel | None = None
        self._needs_age = 0
        self._overruns = np.full(self.jobs.height, np.nan)

    @property
    def start(self) -> int:
        return self.steps[0].cut

    def __iter__(self) -> Iterator[StepResult]:
        plan, since = None, 0
        for step in self.steps:
            searched = plan is None or since >= SEARCH_EVERY
            detector = replace(
                self.detector, plan=None if searched else plan, holdout=self._holdout(step.cut)
            )
            try:
                fitted = detector.fit(
                    self.jobs[step.train],
                    self.past,
                    stage=self.request.stage,
                    seed=self.request.seed,
                    budget=self.request.budget,
                )
            except ModelError as error:
                yield self._without(step, str(error))
                continue
            plan, since = fitted.plan, 1 if searched else since + 1
            yield self._step(step, fitted, searched)

    def _step(self, step: Step, fitted: FittedFailure, searched: bool) -> StepResult:
        asked = self.jobs[step.test]
        X = fitted.columns.matrix(asked, history_features(asked, self.past, stage=self.request.stage))
        scores = fitted.model.predict(X)
        self._scores[step.test] = scores
        calibrated = fitted.calibrated
        return StepResult(
            step,
            asked,
            calibrated.calibrator.apply(scores),
            calibrated.threshold.value,
            self._bound(step, fitted, X, searched),
            searched,
            calibrated.threshold.met,
        )

    def _bound(self, step: Step, fitted: FittedFailure, X: Matrix, searched: bool) -> NDArray[np.float64]:
        """Run times that 95 of 100 jobs keep to: learned now and then, calibrated at each step."""
        stage, asked = self.request.stage, self.jobs[step.test]
        if self._needs is None or searched or self._needs_age >= NEEDS_EVERY:
            rows = mature(self.jobs[step.train])[-NEEDS_ROWS:]
            matrix = fitted.columns.matrix(rows, history_features(rows, self.past, stage=stage))
            self._needs = ResourceModel.fit(
                matrix, rows, seed=self.request.seed, threads=self.detector.threads
            )
            self._needs_age = 0
        self._needs_age += 1
        if RUNTIME not in self._needs.quantiles:
            return np.full(len(X), np.nan)
        known = self._mature(np.flatnonzero(~np.isnan(self._overruns) & (self._known <= step.cut)))
        if len(known) >= FEWEST_CALIBRATED:
            self._needs = self._needs.recalibrated({RUNTIME: self._overruns[known]})
        self._overruns[step.test] = self._needs.scores(X, asked)[RUNTIME]
        return self._needs.predict(X)[RUNTIME].p95

    def _without(self, step: Step, why: str) -> StepResult:
        """What can be said where nothing can be learned yet: how many failed so far."""
        train = self.jobs[step.train].filter(pl.Series(self._labelled[step.train]))
        share = float(failed(train).mean()) if train.height else 0.5
        count = len(step.test)
        nothing = np.full(count, np.nan)
        return StepResult(
            step, self.jobs[step.test], np.full(count, share), np.nextafter(1, 2), nothing, False, refused=why
        )

    def _holdout(self, cut: int) -> Holdout | None:
        """Earlier predictions whose outcome is known by now."""
        told = np.flatnonzero(~np.isnan(self._scores) & self._labelled & (self._known <= cut))
        if len(told) < FEWEST_CALIBRATED:
            return None
        told = self._mature(told)[-CALIBRATED_ON:]
        rows = self.jobs[told]
        y = failed(rows)
        if rows.height < FEWEST_CALIBRATED or np.unique(y).size < 2:
            return None
        return Holdout(self._scores[told], y, rows["submit"].to_numpy(), node_hours(rows))

    def _mature(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Without the last of these jobs, of which only the quick ones are known."""
        return mature(self.jobs[places].with_columns(place=places))["place"].to_numpy()


def counted(jobs: pl.DataFrame, target: Target) -> NDArray[np.bool_]:
    """Whether each job's outcome says anything about the target; that of a job which we stopped does not."""
    labels = [str(outcome) for outcome in (*TARGETS[target], Outcome.COMPLETED)]
    told = pl.col("outcome").is_in(labels) & ~pl.col("intervened").fill_null(False)
    flags: NDArray[np.bool_] = jobs.select(told.fill_null(False)).to_series().to_numpy()
    return flags
