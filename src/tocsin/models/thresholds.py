"""Alarm thresholds: the probability from which a job raises an alarm, chosen by the operator's rule.

A precision is a promise about later jobs, so a threshold must have it with a margin for the variation from period to
period: nine of ten later periods keep it. Without such a threshold, there are no alarms.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.models.metrics import Sorted
from tocsin.models.promise import lowest_precision, periods
from tocsin.models.splits import DAY

__all__ = ["RULES", "Threshold", "ThresholdRule", "choose", "table", "threshold_from_json"]

FEWEST_ALARMS = 10
"""The precision of fewer alarms is chance; if fewer than twice as many jobs fail, half of the failures are enough."""
CANDIDATES = 200
"""Thresholds tried for a precision, at geometrically spaced numbers of alarms: of thousands, the luckiest would be
chosen."""

RULES: Mapping[str, str] = {
    "precision_at_least": "precision of at least {:g} in nine of ten months, then the highest recall",
    "recall_at_least": "recall of at least {:g}, then the highest precision",
    "alarms_per_day_at_most": "at most {:g} alarms a day, then the highest recall",
    "least_cost": "lowest cost in node-hours (CPU-hours if a log has no nodes): those of missed failures plus {:g} times those of good "
    "jobs delayed",
}
"""The kinds of rules and their descriptions."""


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A rule as data; for `least_cost`, `value` is the cost of a delayed hour relative to a wasted one."""

    kind: str
    value: float

    def __post_init__(self) -> None:
        if self.kind not in RULES:
            raise ModelError(f'"{self.kind}" is not a threshold rule; the rules are {", ".join(RULES)}')
        most = 1.0 if self.kind in ("precision_at_least", "recall_at_least") else 1e12
        if not 0 <= self.value <= most:
            raise ModelError(
                f"{self.value} is not a valid value for {self.kind}; it must be between 0 and {most:g}"
            )

    def __str__(self) -> str:
        return RULES[self.kind].format(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A threshold (alarms are raised from `value` on) and its effect on the rows that it was chosen on."""

    value: float
    alarms: int
    alarms_per_day: float
    precision: float | None
    recall: float | None
    saved: float
    """Weight (node-hours) of the failing jobs with an alarm."""
    delayed: float
    """Weight of the good jobs with an alarm."""
    wasted: float
    """Weight of the failing jobs without an alarm."""
    rule: ThresholdRule | None = None
    met: bool = True
    text: str = ""
    """The effect in words, or why the rule cannot be met."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def threshold_from_json(document: Mapping[str, Any]) -> Threshold:
    """What `to_json` wrote."""
    try:
        if set(document) != {f.name for f in fields(Threshold)} or not isinstance(document["value"], float):
            raise ValueError
        rule = document["rule"]
        return Threshold(**{**document, "rule": rule and ThresholdRule(**rule)})
    except (TypeError, ValueError):
        raise ModelError(
            f"{str(dict(document))[:80]} is not a threshold; restore the model from a backup or train again"
        ) from None


def choose(
    rule: ThresholdRule,
    y: NDArray[Any],
    p: NDArray[Any],
    submit: NDArray[Any],
    weight: NDArray[Any] | None = None,
) -> Threshold:
    """The best threshold by this rule among the probabilities of these rows.

    If no threshold has the required recall, the nearest one is returned; if none promises the required precision, one
    that raises no alarm. `met` is then false and `text` gives the reason.
    """
    curve = _Curve(y, p, submit, weight)
    if rule.kind == "precision_at_least":
        place, met, text = _promised(rule, curve)
    elif rule.kind == "least_cost":
        cost = curve.wasted + rule.value * curve.delayed
        place, met = int(np.argmin(cost)), True
        text = f"costs {cost[place]:,.1f} hours, against {cost[0]:,.1f} without alarms"
    elif rule.kind == "alarms_per_day_at_most":
        place = int(np.flatnonzero(curve.alarms_per_day <= rule.value)[-1])  # no alarms always fits
        met = place > 0 or rule.value == 0
        text = f"{curve.alarms_per_day[place]:.3g} alarms a day"
        if not met:
            text = f"even the highest probability gives {curve.alarms_per_day[1]:.3g} alarms a day, so there will be no alarms"
    else:
        fits = np.flatnonzero(curve.recall[1:] >= rule.value) + 1
        met = fits.size > 0 and curve.failing > 0
        place = int(fits[np.argmax(curve.precision[fits])]) if met else 1
        text = f"recall {curve.recall[place]:.3f}"
        if not met:
            text = "recall is unknown because none of these jobs failed"
    return curve.threshold(place, rule, met, text)


def _promised(rule: ThresholdRule, curve: "_Curve") -> tuple[int, bool, str]:
    """The lowest threshold whose precision later periods will keep: its index, whether there is one, and why not."""
    if not curve.failing:
        return 0, False, "precision is unknown because none of these jobs failed, so there will be no alarms"
    most = curve.alarms[-1]
    wanted = np.geomspace(min(max(curve.fewest, 1.0), most), most, CANDIDATES)
    places = np.unique(np.searchsorted(curve.alarms, wanted.round()))
    low = lowest_precision(*curve.by_period(places))
    fits = np.flatnonzero(low >= rule.value)
    if fits.size:
        place = int(fits[-1])
        kept = f"precision {curve.precision[places[place]]:.3f}, and at least {low[place]:.3f} in nine of ten later months"
        return int(places[place]), True, kept
    text = f"no threshold promises precision {rule.value:g} (the best promises {low.max():.3f}), so there will be no alarms"
    return 0, False, text


def table(
    y: NDArray[Any],
    p: NDArray[Any],
    submit: NDArray[Any],
    weight: NDArray[Any] | None = None,
    *,
    most: int = 100,
) -> list[Threshold]:
    """Thresholds from no alarms to alarms for all jobs, evenly spaced by the number of alarms."""
    curve = _Curve(y, p, submit, weight)
    wanted = np.searchsorted(curve.alarms, np.linspace(0, curve.alarms[-1], most))
    return [curve.threshold(int(place), None, True, "") for place in np.unique(wanted)]


class _Curve:
    """All distinct thresholds of the rows, from the highest down; index 0 raises no alarm."""

    def __init__(
        self, y: NDArray[Any], p: NDArray[Any], submit: NDArray[Any], weight: NDArray[Any] | None
    ) -> None:
        rows = Sorted(y, p)
        count = len(rows.order)
        if not count or len(submit) != count or (weight is not None and len(weight) != count):
            raise ModelError(
                "choosing a threshold needs rows, each with an outcome, a probability and an instant"
            )
        hours = np.ones(count) if weight is None else np.asarray(weight, dtype=np.float64)
        if not np.isfinite(hours).all() or (hours < 0).any():
            raise ModelError("the weight of a row is negative or not finite")
        bad, every = rows.sums(hours[rows.order])
        self._rows, self._period = rows, periods(submit)[rows.order]
        self.days = max(1.0, (int(np.max(submit)) - int(np.min(submit))) / DAY)
        self.value = np.r_[np.nextafter(1.0, 2.0), rows.p]
        self.alarms = np.r_[0.0, np.cumsum(rows.total)]
        self.hits = np.r_[0.0, np.cumsum(rows.positive)]
        self.failing = float(self.hits[-1])
        self.fewest = min(FEWEST_ALARMS, np.ceil(self.failing / 2))
        self.precision = self.hits / np.maximum(self.alarms, 1)
        self.recall = self.hits / max(self.failing, 1)
        self.alarms_per_day = self.alarms / self.days
        self.saved = np.r_[0.0, np.cumsum(bad)]
        self.delayed = np.r_[0.0, np.cumsum(every - bad)]
        self.wasted = np.maximum(bad.sum() - self.saved, 0.0)

    def by_period(self, places: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The alarms and hits of thresholds that raise some, in each period of time."""
        last = self.alarms[places].astype(np.int64) - 1
        alarms, hits = np.empty((2, int(self._period.max()) + 1, len(places)))
        for period in range(len(alarms)):
            here = self._period == period
            alarms[period] = np.cumsum(here)[last]
            hits[period] = np.cumsum(here * self._rows.y)[last]
        return alarms, hits

    def threshold(self, place: int, rule: ThresholdRule | None, met: bool, text: str) -> Threshold:
        return Threshold(
            value=float(self.value[place]),
            alarms=int(self.alarms[place]),
            alarms_per_day=float(self.alarms_per_day[place]),
            precision=float(self.precision[place]) if self.alarms[place] else None,
            recall=float(self.recall[place]) if self.failing else None,
            saved=float(self.saved[place]),
            delayed=float(self.delayed[place]),
            wasted=float(self.wasted[place]),
            rule=rule,
            met=bool(met),
            text=text,
        )
