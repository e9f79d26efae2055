"""Metrics of predictions, with confidence intervals from resampling whole days or weeks instead of rows.

Jobs of one day fail together (a broken node, one user's array), so resampling rows would give intervals far too narrow.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.models.cards import Figure
from tocsin.models.splits import DAY

__all__ = [
    "BINS",
    "METRICS",
    "Metric",
    "Sorted",
    "calibration_error",
    "evaluate",
    "measure",
    "measure_weighted",
]

BINS = 15
Floats = NDArray[np.float64]

METRICS = {
    "accuracy": "there is no row",
    "precision": "no row reaches the threshold",
    "recall": "no row is positive",
    "f1": "no row is positive and none reaches the threshold",
    "auc": "all rows are of one class",
    "average_precision": "no row is positive",
    "brier": "there is no row",
    "calibration_error": "there is no row",
    "baseline": "there is no row",
}
"""The figures in the order of a report, and why one may be absent. `baseline` is the share of the larger class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure without stage, split and data."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None

    def figure(self, *, stage: Stage, split: str, data: str) -> Figure:
        """The figure of a card."""
        return Figure(**asdict(self), stage=stage, split=split, data=data)


def evaluate(
    y: NDArray[Any],
    p: NDArray[Any],
    submit: NDArray[Any],
    *,
    threshold: float,
    block_days: float = 1,
    resamples: int = 200,
    level: float = 0.95,
    seed: int = 0,
) -> list[Metric]:
    """All metrics of these predictions; a row is an alarm from `threshold` on."""
    rows = Sorted(y, p)
    if len(submit) != len(rows.order):
        raise ModelError(f"{len(rows.order):,} predictions, but {len(submit):,} instants")
    found = _figures(rows, rows.positive, rows.total, threshold)
    blocks = np.unique(np.asarray(submit) // round(block_days * DAY), return_inverse=True)[1]
    count = int(blocks.max()) + 1 if len(blocks) else 0
    if count < 2 or resamples < 1:
        why = "all rows are in one block of time, so there is no interval"
        return [_metric(name, found[place], None, why) for place, name in enumerate(METRICS)]
    random = np.random.default_rng(seed)
    sampled = np.empty((resamples, len(METRICS)))
    sorted_blocks = blocks[rows.order]
    for resample in range(resamples):
        times = np.bincount(random.integers(count, size=count), minlength=count)
        weight = times[sorted_blocks].astype(np.float64)
        sampled[resample] = _figures(rows, *rows.sums(weight), threshold)
    return [
        _metric(
            name, found[place], _interval(sampled[:, place], level), "too few blocks of time have a value"
        )
        for place, name in enumerate(METRICS)
    ]


def calibration_error(y: NDArray[Any], p: NDArray[Any], *, bins: int = BINS) -> float:
    """The mean distance of probability and frequency over bins of equal mass; equal probabilities share a bin."""
    rows = Sorted(y, p)
    return _calibration_error(rows.p, rows.positive, rows.total, bins)


def measure(name: str, y: NDArray[Any], p: NDArray[Any], *, threshold: float = 0.5) -> float:
    """One metric without an interval; NaN if undefined."""
    if name not in METRICS:
        raise ModelError(f'"{name}" is not a metric; the metrics are {", ".join(METRICS)}')
    rows = Sorted(y, p)
    return _figures(rows, rows.positive, rows.total, threshold)[list(METRICS).index(name)]


def measure_weighted(name: str, rows: "Sorted", weight: Floats, *, threshold: float = 0.5) -> float:
    """One metric with a weight for each row, in the given order; NaN if undefined."""
    return _figures(rows, *rows.sums(weight[rows.order]), threshold)[list(METRICS).index(name)]


class Sorted:
    """Predictions from the highest down, with equal ones grouped: the basis of all curves."""

    def __init__(self, y: NDArray[Any], p: NDArray[Any]) -> None:
        labels, scores = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
        if labels.shape != scores.shape or labels.ndim != 1:
            raise ModelError(f"{labels.shape} outcomes and {scores.shape} probabilities differ in shape")
        if not np.isin(labels, (0.0, 1.0)).all():
            raise ModelError("an outcome is neither 0 nor 1; remove rows with unknown outcomes")
        if not ((scores >= 0) & (scores <= 1)).all():
            raise ModelError("a probability is not between 0 and 1")
        self.order = np.argsort(-scores, kind="stable")
        self.y = labels[self.order]
        ordered = scores[self.order]
        self.starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
        self.p: Floats = ordered[self.starts]
        self.positive, self.total = self.sums(np.ones(len(ordered)))

    def sums(self, weight: Floats) -> tuple[Floats, Floats]:
        """The weight of positive rows and of all rows in each group; `weight` is in the order of this class."""
        if not len(self.starts):
            return np.empty(0), np.empty(0)
        return np.add.reduceat(weight * self.y, self.starts), np.add.reduceat(weight, self.starts)


def _figures(rows: Sorted, positive: Floats, total: Floats, threshold: float) -> list[float]:
    """The values in the order of METRICS; undefined ones are NaN."""
    negative = total - positive
    hits, alarms = np.cumsum(positive), np.cumsum(total)
    everything, failing = (float(alarms[-1]), float(hits[-1])) if len(total) else (0.0, 0.0)
    good = everything - failing
    above = int(np.searchsorted(-rows.p, -threshold, side="right"))
    tp, called = (float(hits[above - 1]), float(alarms[above - 1])) if above else (0.0, 0.0)
    fp, fn = called - tp, failing - tp
    squares = positive * (1 - rows.p) ** 2 + negative * rows.p**2
    precision = np.divide(hits, alarms, out=np.zeros_like(hits), where=alarms > 0)
    return [
        _share(everything - fp - fn, everything),
        _share(tp, called),
        _share(tp, failing),
        _share(2 * tp, 2 * tp + fp + fn),
        _share(float((negative * (hits - positive / 2)).sum()), failing * good),
        _share(float((positive * precision).sum()), failing),
        _share(float(squares.sum()), everything),
        _calibration_error(rows.p, positive, total, BINS),
        _share(max(failing, good), everything),
    ]


def _calibration_error(p: Floats, positive: Floats, total: Floats, bins: int) -> float:
    everything = float(total.sum())
    if not everything:
        return float("nan")
    middle = np.cumsum(total) - total / 2
    place = np.minimum((middle / everything * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, weights=positive - total * p)
    return float(np.abs(gaps).sum()) / everything


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _interval(values: Floats, level: float) -> tuple[float, float] | None:
    known = values[~np.isnan(values)]
    if known.size < max(2, values.size // 2):
        return None
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _metric(name: str, value: float, interval: tuple[float, float] | None, why: str) -> Metric:
    if np.isnan(value):
        return Metric(name=name, value=None, reason=METRICS[name])
    if interval is None:
        return Metric(name=name, value=float(value), reason=why)
    # Resampled values of a skewed metric may all lie on one side of its value.
    return Metric(name=name, value=float(value), low=min(interval[0], value), high=max(interval[1], value))
