"""Scores of jobs by models of earlier jobs, and the calibration and threshold derived from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.failure.experience import YOUNG, blended, own_weight
from tocsin.failure.recent_scores import RecentScores
from tocsin.failure.score_table import read_table
from tocsin.models.calibration import (
    IDENTITY,
    Calibrator,
    Chosen,
    calibrate,
    calibrator_from_json,
    fit_isotonic,
    fit_platt,
    towards_identity,
)
from tocsin.models.thresholds import Threshold, ThresholdRule, choose, table, threshold_from_json

__all__ = ["Calibrated", "Holdout", "calibrated", "rehearsed"]

LEVEL = 0.01
_EVEN = 0.5
_HALF_CURVED = 1000.0
"""With this many jobs of the rarer outcome, a calibration curve is halfway from the identity to the best fit."""

_COLUMNS: dict[str, type[pl.DataType]] = {
    "score": pl.Float64, "failed": pl.Float64, "submit": pl.Int64, "hours": pl.Float64,
    "chooses": pl.Boolean, "measures": pl.Boolean, "others": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holdout:
    """Scores of jobs by models of earlier jobs, in order of time, and how these jobs ended."""

    scores: NDArray[np.float64]
    failed: NDArray[np.float64]
    submit: NDArray[np.int64]
    hours: NDArray[np.float64]
    """Node-hours of each job."""
    chooses: NDArray[np.bool_]
    """The rows that choose the calibration and threshold with which the figures are measured."""
    measures: NDArray[np.bool_]
    """The rows on which the figures are measured: later ones, which chose nothing."""
    others: NDArray[np.float64] | None = None
    """The scores of the same jobs by other clusters' experience, if used."""

    def part(self, rows: NDArray[np.bool_]) -> "Holdout":
        return Holdout(
            self.scores[rows],
            self.failed[rows],
            self.submit[rows],
            self.hours[rows],
            self.chooses[rows],
            self.measures[rows],
            None if self.others is None else self.others[rows],
        )

    def blended(self, own_weight: float | None) -> NDArray[np.float64]:
        """The scores blended with those of other clusters' experience."""
        if self.others is None or own_weight is None:
            return self.scores
        return blended(self.scores, self.others, own_weight)

    def frame(self) -> pl.DataFrame:
        values = (self.scores, self.failed, self.submit, self.hours, self.chooses, self.measures, self.others)
        return pl.DataFrame(dict(zip(_COLUMNS, values, strict=True)), schema=_COLUMNS)

    @classmethod
    def read(cls, path: Path) -> "Holdout":
        """Read the table that `frame` made."""
        table = read_table(path, _COLUMNS)
        found = cls(*(table[name].to_numpy() for name in _COLUMNS))
        if table["others"].null_count():
            found = replace(found, others=None)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """How a model's scores become probabilities, and the threshold of its alarms."""

    own_weight: float | None = None
    """The weight of the model's own log-odds relative to other clusters' experience; None if that is not used."""
    calibrator: Calibrator
    brier: Mapping[str, float]
    threshold: Threshold
    table: list[Threshold]

    def to_json(self) -> dict[str, Any]:
        return {
            "own_weight": self.own_weight,
            "calibrator": self.calibrator.to_json(),
            "brier": dict(self.brier),
            "threshold": self.threshold.to_json(),
            "table": [row.to_json() for row in self.table],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Calibrated":
        weight = document.get("own_weight")
        return cls(
            own_weight=None if weight is None else _share(weight),
            calibrator=calibrator_from_json(document["calibrator"]),
            brier=dict(document["brier"]),
            threshold=threshold_from_json(document["threshold"]),
            table=[threshold_from_json(row) for row in document["table"]],
        )

    def probabilities(self, holdout: Holdout) -> NDArray[np.float64]:
        return self.calibrator.apply(holdout.blended(self.own_weight))


def _share(value: Any) -> float:
    if not 0 <= float(value) <= 1:
        raise ValueError(f"own_weight is {value}; it must be between 0 and 1")
    return float(value)


def rehearsed(holdout: Holdout, *, rule: ThresholdRule) -> Calibrated:
    """Calibration and threshold as chosen by the rows before those on which the figures are measured."""
    if holdout.chooses.any():
        return calibrated(holdout.part(holdout.chooses), rule=rule)
    rows = table(holdout.failed, holdout.scores, holdout.submit, holdout.hours)
    silent = replace(rows[0], rule=rule, met=False, text="no outcome was known in time to choose a threshold")
    return Calibrated(calibrator=IDENTITY, brier={}, threshold=silent, table=rows)


def calibrated(holdout: Holdout, *, rule: ThresholdRule, recent: RecentScores | None = None) -> Calibrated:
    """Weigh other clusters' experience, fit the calibration curve and choose the threshold by the rule, with all rows.

    `recent` scores of models in use count as well.
    """
    y, submit, hours = holdout.failed, holdout.submit, holdout.hours
    weight = None if holdout.others is None else own_weight(holdout.scores, holdout.others, y, recent)
    scores = holdout.blended(weight)
    chosen = calibrate(scores, y)
    calibrator = _steady(chosen, scores, y)
    p = calibrator.apply(scores)
    threshold = _lowered(_chosen(rule, holdout, p), p)
    return Calibrated(
        own_weight=weight,
        calibrator=calibrator,
        brier=chosen.brier,
        threshold=threshold,
        table=[
            replace(row, value=threshold.value) if row.alarms == threshold.alarms else row
            for row in table(y, p, submit, hours)
        ],
    )


def _steady(chosen: Chosen, scores: NDArray[np.float64], y: NDArray[np.float64]) -> Calibrator:
    """A curve that does not jump from one training to the next: the less evidence, the closer it is to the scores.

    Changing curves harm the ranking over weeks: in April 2020, DOST-COARE had, week by week, none, a beta curve with a
    slope of 2.7, and none again; over the month, the AUC was 0.734 by the scores and 0.712 by the probabilities. So the
    curve is always logistic: where the best kind alternated with it from week to week, on METACENTRUM with another seed,
    the AUC over June was 0.597 by the best kinds and 0.637 by logistic curves, and on no log was the Brier score worse.
    """
    if chosen.reason is not None:
        return IDENTITY
    rarer = float(min(y.sum(), len(y) - y.sum()))
    found = (
        towards_identity(fit_platt(scores, y), _HALF_CURVED / (rarer + _HALF_CURVED))
        if len(y) >= YOUNG
        else chosen.calibrator
    )
    # A flat curve would give all jobs one probability; without evidence, the raw order is still the best guess.
    return IDENTITY if np.ptp(found.apply(np.array([0.01, 0.99]))) < LEVEL else found


def _chosen(rule: ThresholdRule, holdout: Holdout, p: NDArray[np.float64]) -> Threshold:
    """The threshold by the rule; for a rule on precision, never at a probability at which most jobs ended well.

    Correct high probabilities leave room for low ones that are mostly wrong: on a small Slurm, a good job with a risk
    of 15 % was called likely to fail. How such jobs ended decides, because the probabilities of a young cluster are
    lower than the shares of failures.
    """
    y, submit, hours = holdout.failed, holdout.submit, holdout.hours
    if rule.kind != "precision_at_least" or not len(y):
        return choose(rule, y, p, submit, hours)
    likely = np.where(fit_isotonic(p, y).apply(p) >= min(rule.value, _EVEN), p, 0.0)
    threshold = choose(rule, y, likely, submit, hours)
    if threshold.value > 0:
        return threshold
    # If nearly all jobs fail, alarms on all would keep the promise.
    *_, lowest = (row for row in table(y, likely, submit, hours) if row.value > 0)
    return replace(lowest, rule=rule, text=threshold.text)


def _lowered(threshold: Threshold, p: NDArray[np.float64]) -> Threshold:
    """Lower the threshold halfway to the next probability: the same alarms, but no job is exactly at it.

    Never below the precision that the rule requires: a calibrated probability is the precision of jobs that have it.
    """
    below, rule = p[p < threshold.value], threshold.rule
    if not threshold.met or not threshold.alarms or not below.size:
        return threshold
    asked = rule.value if rule and rule.kind == "precision_at_least" else 0.0
    middle = (threshold.value + float(below.max())) / 2
    return replace(threshold, value=max(middle, min(asked, threshold.value)))
