"""Walk-forward back-test: train on what was known, predict the next days as the service would, move on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget, Detector, Known
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.labels import FEWEST, failed
from tocsin.history.cached import CachedKnown
from tocsin.judge.answers import as_known
from tocsin.learn.alarms import MODEL, SHORTAGES, Alarms, Rules, failure_alarms
from tocsin.models.promise import Range
from tocsin.models.splits import NEVER, Step, walk

__all__ = ["RESOURCES_EVERY", "SEARCH_EVERY", "StepResult", "Walk", "WalkRequest", "counted"]

SEARCH_EVERY = 12
"""Trainings from one search to the next; those between use its plan."""
RESOURCES_EVERY = 4
"""Trainings from one model of run time and memory to the next."""
FIRST = 0.2
"""The share of the jobs before the first prediction, where no shipped model can make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkRequest:
    stage: Stage = Stage.SUBMIT
    every_days: float = 7
    train_days: float | None = None
    """None: all that is known."""
    budget: Budget = field(default_factory=lambda: Budget(trials=4))
    """Of each search."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The predictions of one step."""

    step: Step
    jobs: pl.DataFrame
    probability: NDArray[np.float64]
    alarms: Alarms
    missing: Mapping[str, str] = field(default_factory=dict)
    """By source of alarms, why it could not use all of its evidence."""
    bound: NDArray[np.float64]
    """The run time that 95 of 100 completed jobs keep to; NaN where there is none."""
    searched: bool = False
    met: bool = True
    """Whether the threshold meets the rule."""
    refused: str | None = None
    """Why no model was trained: then the shipped one predicts, or else the share of failures so far does."""
    expected: Range | None = None
    """The precision that the model's card gives for its alarms, with its range in later months."""
    own_weight: float | None = None
    """Of the model that was trained, beside other clusters' experience; None where that is not used."""


class Walk:
    """Its steps, one by one."""

    def __init__(
        self,
        jobs: pl.DataFrame,
        known: Known,
        detector: FailureDetector,
        request: WalkRequest,
        *,
        rules: Mapping[str, Detector] | None = None,
        start: int | None = None,
    ) -> None:
        """`rules`: detectors that need no training, by name; `start`: the first prediction, by default the first job, or after a fifth of the jobs without a shipped model."""
        if detector.target is None:
            raise ModelError("a back-test needs a target: jobs that end later must not choose it")
        self.jobs = jobs.filter(reached_at(request.stage).is_not_null()).sort(
            "submit", "job_id", "task", nulls_last=False
        )
        if start is None and self.jobs.height < FEWEST:
            raise ModelError(
                f"{self.jobs.height:,} of {jobs.height:,} jobs reached {request.stage}; a back-test needs at least {FEWEST}: "
                "read a longer log"
            )
        self.known = CachedKnown(known, self.jobs, stage=request.stage)
        self.detector = replace(detector, explainers=False)
        self.request = request
        outcome_known = self.jobs.select(
            pl.when(pl.col("outcome").is_not_null()).then("known_at").fill_null(NEVER)
        ).to_series()
        self.steps = list(
            walk(
                self.jobs["submit"].to_numpy(),
                outcome_known.to_numpy(),
                first=FIRST if detector.shipped is None else 0.0,
                start=start,
                every_days=request.every_days,
                train_days=request.train_days,
            )
        )
        self._rules = Rules(rules or {}, self.known, request.stage)
        self._labelled = counted(self.jobs, detector.target)

    @property
    def start(self) -> int:
        return self.steps[0].cut

    def __iter__(self) -> Iterator[StepResult]:
        last: FittedFailure | None = None
        since_search = since_resources = 0
        for step in self.steps:
            searched = last is None or since_search >= SEARCH_EVERY
            fresh = searched or since_resources >= RESOURCES_EVERY
            detector = replace(
                self.detector,
                plan=last.plan if last and not searched else None,
                resources=last.resources if last and not fresh else None,
            )
            try:
                last = detector.fit(
                    self.jobs[step.train],
                    self.known,
                    stage=self.request.stage,
                    seed=self.request.seed,
                    budget=self.request.budget,
                )
            except ModelError as error:
                yield self._untrained(step, str(error))
                continue
            since_search = 1 if searched else since_search + 1
            since_resources = 1 if fresh else since_resources + 1
            yield self._predicted(step, last, searched)

    def _predicted(self, step: Step, fitted: FittedFailure, searched: bool) -> StepResult:
        jobs, stage = self.jobs[step.test], self.request.stage
        visible = as_known(jobs, stage)
        parts = fitted.assess(visible, self.known, stage=stage)
        failures = [each.failure for each in parts if each.failure is not None]
        runtimes = [each.resources.runtime_seconds if each.resources else None for each in parts]
        return StepResult(
            step=step,
            jobs=jobs,
            probability=np.array([each.probability for each in failures]),
            alarms=failure_alarms(parts) | self._rules.alarms(visible, self.known, stage),
            missing=dict(self._rules.missing),
            bound=np.array([np.nan if each is None else each.p95 for each in runtimes]),
            searched=searched,
            met=fitted.calibrated.threshold.met,
            expected=fitted.promised(),
            own_weight=fitted.calibrated.own_weight,
        )

    def _untrained(self, step: Step, why: str) -> StepResult:
        if self.detector.shipped is None or self.detector.target is None:
            return self._without_model(step, why)
        shipped = self.detector.shipped.for_target(self.detector.target)
        return replace(self._predicted(step, shipped, searched=False), refused=why)

    def _without_model(self, step: Step, why: str) -> StepResult:
        """Where there is no model at all: the share of failures so far, and the alarms of rules."""
        train = self.jobs[step.train].filter(pl.Series(self._labelled[step.train]))
        jobs, count = self.jobs[step.test], len(step.test)
        visible = as_known(jobs, self.request.stage)
        silent = {source: np.zeros(count, dtype=bool) for source in (MODEL, SHORTAGES)}
        return StepResult(
            step=step,
            jobs=jobs,
            probability=np.full(count, float(failed(train).mean()) if train.height else 0.5),
            alarms=silent | self._rules.alarms(visible, self.known, self.request.stage),
            missing=dict(self._rules.missing),
            bound=np.full(count, np.nan),
            refused=why,
        )


def counted(jobs: pl.DataFrame, target: Target) -> NDArray[np.bool_]:
    """Whether each job's outcome counts for the target; that of a job which tocsin stopped does not."""
    labels = [str(outcome) for outcome in (*TARGETS[target], Outcome.COMPLETED)]
    counts = pl.col("outcome").is_in(labels) & ~pl.col("intervened").fill_null(False)
    flags: NDArray[np.bool_] = jobs.select(counts.fill_null(False)).to_series().to_numpy()
    return flags
