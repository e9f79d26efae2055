"""Walk-forward back-test: train on what was known, use the new model if it is no worse, predict the next days, move on."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget, Detector, Known
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.labels import FEWEST, failed
from tocsin.history.cached import CachedKnown
from tocsin.judge.answers import as_known
from tocsin.learn.alarms import MODEL, SHORTAGES, Alarms, Rules, failure_alarms
from tocsin.learn.held_back import compete, counted, hold_back
from tocsin.learn.recent_scores import recent_scores, weighed_at
from tocsin.models.promise import Range
from tocsin.models.splits import DAY, NEVER, Step, walk

__all__ = ["FEWEST_FIRST", "RESOURCES_EVERY", "SEARCH_EVERY", "StepResult", "Walk", "WalkRequest"]

SEARCH_EVERY = 12
"""Trainings from one search to the next; those in between use its plan."""
RESOURCES_EVERY = 4
"""Trainings from one model of run time and memory to the next."""
FEWEST_FIRST = 1000
"""Jobs with a known outcome. With fewer, a cluster's own model says little that its users do not know."""
FIRST = 0.2
"""The share of the jobs before the first prediction, if no shipped model can make it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WalkRequest:
    stage: Stage = Stage.SUBMIT
    every_days: float = 7
    train_days: float | None = None
    """None: all that is known."""
    holdback_days: float = 3
    """The last days are not used to train a new model, but to compare it with the one in use; 0: it is always used."""
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
    """The run time that 95 of 100 completed jobs keep to; NaN if there is none."""
    searched: bool = False
    met: bool = True
    """Whether the threshold meets the rule."""
    trained: bool = False
    kept: str | None = None
    """Why the previous model stays in use: it is better, or there is too little to compare on."""
    refused: str | None = None
    """Why no model was trained; then the shipped one predicts, or else the share of failures so far does."""
    expected: Range | None = None
    """The precision that the model's card gives for its alarms, with its range in later months."""
    own_weight: float | None = None
    """The trained model's weight relative to other clusters' experience; None if that is not used."""


class Walk:
    """Runs the steps one by one."""

    def __init__(
        self,
        jobs: pl.DataFrame,
        known: Known,
        detector: FailureDetector,
        request: WalkRequest,
        *,
        rules: Mapping[str, Detector] | None = None,
        start: int | None = None,
        asked: Callable[[pl.DataFrame, Known, FittedFailure], None] | None = None,
    ) -> None:
        """`rules`: detectors that need no training, by name; `start`: the first prediction, by default the first job, or
        after a fifth of the jobs without a shipped model; `asked`: receives which model assesses which jobs, and what is
        known."""
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
        self._asked = asked
        self._outcome_known = (
            self.jobs.select(pl.when(pl.col("outcome").is_not_null()).then("known_at").fill_null(NEVER))
            .to_series()
            .to_numpy()
        )
        self.steps = list(
            walk(
                self.jobs["submit"].to_numpy(),
                self._outcome_known,
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
        training = _Training(self.detector, self.known, self.request)
        champion: FittedFailure | None = None
        for step in self.steps:
            training.searched = training.trained = False
            kept = None
            try:
                if champion is None:
                    champion = self._first(step, training)
                else:
                    champion, kept = self._contested(step, champion, training)
            except ModelError as error:
                if champion is None:
                    yield self._untrained(step, str(error))
                    continue
                kept = str(error)
            found = self._predicted(step, champion)
            yield replace(found, searched=training.searched, trained=training.trained, kept=kept)

    def _first(self, step: Step, training: "_Training") -> FittedFailure:
        """As in the service: until there are enough outcomes, the shipped model is in use."""
        known = int((self._outcome_known <= step.cut).sum())
        if self.detector.shipped is not None and known < FEWEST_FIRST:
            raise ModelError(
                f"{known:,} outcomes were known; a first model of its own needs {FEWEST_FIRST:,}"
            )
        return training.fit(self.jobs[step.train])

    def _contested(
        self, step: Step, champion: FittedFailure, training: "_Training"
    ) -> tuple[FittedFailure, str | None]:
        """The model in use from now on, and why the previous one stays."""
        if not self.request.holdback_days:
            return training.fit(self.jobs[step.train]), None
        known = (self._outcome_known <= step.cut) & (self.jobs["submit"].to_numpy() < step.cut)
        labelled = self.jobs.filter(pl.Series(known & self._labelled))
        back = hold_back(
            labelled,
            days=self.request.holdback_days,
            trained_until=champion.window.last,
            target=champion.target,
        )
        days = self.request.train_days
        since = 0 if days is None else back.cut - round(days * DAY)
        challenger = training.fit(back.past.filter(pl.col("submit") >= since))
        visible = as_known(back.held, self.request.stage)
        history = history_features(visible, self.known, stage=self.request.stage)
        recent = recent_scores(champion, labelled, self.known)
        both = champion, weighed_at(challenger, recent, back.cut)
        result = compete(back, *(each.probabilities(visible, history) for each in both))
        if not result.promotes:
            return champion, result.why
        return challenger.weighed_by(recent), None

    def _predicted(self, step: Step, fitted: FittedFailure) -> StepResult:
        jobs, stage = self.jobs[step.test], self.request.stage
        visible = as_known(jobs, stage)
        if self._asked is not None:
            self._asked(visible, self.known, fitted)
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
            met=fitted.calibrated.threshold.met,
            expected=fitted.promised(),
            own_weight=fitted.calibrated.own_weight,
        )

    def _untrained(self, step: Step, why: str) -> StepResult:
        if self.detector.shipped is None or self.detector.target is None:
            return self._without_model(step, why)
        shipped = self.detector.shipped.for_target(self.detector.target)
        return replace(self._predicted(step, shipped), refused=why)

    def _without_model(self, step: Step, why: str) -> StepResult:
        """Without any model: the share of failures so far, and the alarms of rules."""
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


class _Training:
    """Trains one model after the other; most use the plan of an earlier one, which saves time."""

    def __init__(self, detector: FailureDetector, known: Known, request: WalkRequest) -> None:
        self._detector, self._known, self._request = detector, known, request
        self._last: FittedFailure | None = None
        self._since_search = self._since_resources = 0
        self.searched = self.trained = False

    def fit(self, jobs: pl.DataFrame) -> FittedFailure:
        search = self._last is None or self._since_search >= SEARCH_EVERY
        fresh = search or self._since_resources >= RESOURCES_EVERY
        detector = replace(
            self._detector,
            plan=self._last.plan if self._last and not search else None,
            resources=self._last.resources if self._last and not fresh else None,
        )
        found = detector.fit(
            jobs,
            self._known,
            stage=self._request.stage,
            seed=self._request.seed,
            budget=self._request.budget,
        )
        self._since_search = 1 if search else self._since_search + 1
        self._since_resources = 1 if fresh else self._since_resources + 1
        self._last, self.searched, self.trained = found, search, True
        return found
