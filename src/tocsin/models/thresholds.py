"""From which probability on a job rings: chosen by a rule that the operator states, with what it would have done."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.models.metrics import Sorted
from tocsin.models.splits import DAY

__all__ = ["RULES", "Threshold", "ThresholdRule", "choose", "table", "threshold_from_json"]

FEWEST_ALARMS = 10
"""A precision of fewer alarms is luck; where fewer than twice as many jobs fail, half of those are enough."""

RULES: Mapping[str, str] = {
    "precision_at_least": "of the alarms, at least the share {:g} is right; then as many as can be found",
    "recall_at_least": "of the failing jobs, at least the share {:g} is found; then with the fewest false alarms",
    "alarms_per_day_at_most": "at most {:g} alarms a day; then as many as can be found",
    "least_cost": "least node-hours (CPU-hours where a log tells no nodes): wasted by failing jobs that were missed, plus {:g} "
    "times those of good jobs delayed",
}
"""Kinds of rules, in words."""


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """A rule as data; for `least_cost`, `value` is what a delayed hour costs beside a wasted one."""

    kind: str
    value: float

    def __post_init__(self) -> None:
        if self.kind not in RULES:
            raise ModelError(f'"{self.kind}" is no rule for a threshold; there are {", ".join(RULES)}')
        most = 1.0 if self.kind in ("precision_at_least", "recall_at_least") else 1e12
        if not 0 <= self.value <= most:
            raise ModelError(f"{self.value} is no value for {self.kind}; it lies between 0 and {most:g}")

    def __str__(self) -> str:
        return RULES[self.kind].format(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A threshold (a job rings from `value` on) and what it would have done on the rows that it was chosen by."""

    value: float
    alarms: int
    alarms_per_day: float
    precision: float | None
    recall: float | None
    saved: float
    """Weight (node-hours) of the failing jobs that would have rung."""
    delayed: float
    """Weight of the good jobs that would have rung."""
    wasted: float
    """Weight of the failing jobs that would not have rung."""
    rule: ThresholdRule | None = None
    met: bool = True
    text: str = ""
    """What was chosen, or why the rule cannot be met."""

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
            f"{str(dict(document))[:80]} is no threshold; restore the model from a backup or train again"
        ) from None


def choose(
    rule: ThresholdRule,
    y: NDArray[Any],
    p: NDArray[Any],
    submit: NDArray[Any],
    weight: NDArray[Any] | None = None,
) -> Threshold:
    """The best threshold by this rule among all that these rows can tell apart.

    Where none reaches a recall, the nearest is returned; where none is as precise as asked for, silence is, for whoever
    asks for precision would rather hear nothing. `met` is false then, with a sentence.
    """
    curve = _Curve(y, p, submit, weight)
    if rule.kind == "least_cost":
        cost = curve.wasted + rule.value * curve.delayed
        place, met = int(np.argmin(cost)), True
        text = f"costs {cost[place]:,.1f} of the {cost[0]:,.1f} hours that silence costs"
    elif rule.kind == "alarms_per_day_at_most":
        place = int(np.flatnonzero(curve.alarms_per_day <= rule.value)[-1])  # silence always fits
        met = place > 0 or rule.value == 0
        text = f"makes {curve.alarms_per_day[place]:.3g} alarms a day"
        if not met:
            text = f"even the highest probability makes {curve.alarms_per_day[1]:.3g} alarms a day; nothing will ring"
    else:
        measure = curve.precision if rule.kind == "precision_at_least" else curve.recall
        other = curve.recall if rule.kind == "precision_at_least" else curve.precision
        name = rule.kind.partition("_")[0]
        fewest = curve.fewest if name == "precision" else 1.0
        fits = np.flatnonzero((measure[1:] >= rule.value) & (curve.alarms[1:] >= fewest)) + 1
        met = fits.size > 0 and curve.failing > 0
        if met:
            place = int(fits[np.argmax(other[fits])])
            text = f"has {name} {measure[place]:.3f}"
        else:
            enough = np.flatnonzero(curve.alarms >= max(1.0, fewest))
            best = int(enough[np.argmax(measure[enough])])
            place = 0 if name == "precision" else best
            silent = "; nothing will ring" * (place == 0)
            text = f"no threshold reaches {name} {rule.value:g}: the best is {measure[best]:.3f}{silent}"
            if not curve.failing:
                text = f"no job among them failed, so {name} cannot be told{silent}"
    return curve.threshold(place, rule, met, text)


def table(
    y: NDArray[Any],
    p: NDArray[Any],
    submit: NDArray[Any],
    weight: NDArray[Any] | None = None,
    *,
    most: int = 100,
) -> list[Threshold]:
    """Thresholds from silence to ringing for all, about evenly in the number of alarms."""
    curve = _Curve(y, p, submit, weight)
    wanted = np.searchsorted(curve.alarms, np.linspace(0, curve.alarms[-1], most))
    return [curve.threshold(int(place), None, True, "") for place in np.unique(wanted)]


class _Curve:
    """All thresholds that the rows tell apart, from the highest down; place 0 is silence."""

    def __init__(
        self, y: NDArray[Any], p: NDArray[Any], submit: NDArray[Any], weight: NDArray[Any] | None
    ) -> None:
        rows = Sorted(y, p)
        count = len(rows.order)
        if not count or len(submit) != count or (weight is not None and len(weight) != count):
            raise ModelError(
                "a threshold needs rows, and for each one an outcome, a probability and an instant"
            )
        hours = np.ones(count) if weight is None else np.asarray(weight, dtype=np.float64)
        if not np.isfinite(hours).all() or (hours < 0).any():
            raise ModelError("a weight of a row is negative or no number")
        bad, every = rows.sums(hours[rows.order])
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
