"""The error from which a window is unusual: set on normal windows at a given false-alarm rate, by kind of job."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.json_form import from_json, to_json

__all__ = ["LEAST_WINDOWS", "Kind", "Normal", "Rule", "Thresholds", "normal_of", "upper_quantile"]

LEAST_WINDOWS = 200
"""A kind of job with fewer normal windows has no threshold of its own."""
RESOLUTION = 1e-4
"""The lowest threshold: the kernel counts CPU time in ticks, so each share of a second is off by up to 0.01."""
_TAIL = 0.05
"""Share of the errors from which the tail is estimated; up to four times as many if these are fewer than 50."""
_Z = 1.2816
"""Standard deviations of a one-sided confidence bound of 90 %."""

Floats = NDArray[np.float64]


class Kind(NamedTuple):
    """Jobs that are compared with each other, such as the tasks of an array."""

    user: str | None
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a window is unusual, and when that raises an alarm."""

    rate: float = 0.001
    """The share of normal windows above the threshold: at one window in 10 s, 8.6 per CPU and day."""
    in_a_row: int = 3
    """An alarm is raised after this many consecutive windows on the same CPU, or of the same job."""

    def __str__(self) -> str:
        return f"at most {100 * self.rate:g} % of normal windows above it (90 % confidence); an alarm after {self.in_a_row} in a row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """What is normal for some jobs."""

    windows: int
    threshold: float
    levels: list[float]
    """By channel, the median over windows of its mean."""
    spreads: list[float]
    """By channel, how far from it the middle 90 % of windows are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What is normal for each kind of job, and for all."""

    rule: Rule
    all: Normal
    kinds: Mapping[Kind, Normal] = field(default_factory=dict)

    @classmethod
    def fit(
        cls,
        errors: NDArray[Any],
        means: NDArray[Any],
        kinds: Sequence[Kind],
        *,
        rule: Rule | None = None,
        overlap: float = 1,
    ) -> "Thresholds":
        """From the errors of normal windows, the mean of each channel in each, and the kind of each one's job.

        `overlap`: windows that share each second; windows are independent only at that distance.
        """
        rule = rule or Rule()
        if not len(errors):
            raise ModelError("there are no normal windows to set a threshold on")
        rows = pl.DataFrame({"kind": range(len(kinds))}).with_columns(
            pl.Series("user", [kind.user for kind in kinds], pl.String),
            pl.Series("name", [kind.name for kind in kinds], pl.String),
        )
        found: dict[Kind, Normal] = {}
        for (user, name), group in rows.group_by("user", "name", maintain_order=True):
            if group.height >= LEAST_WINDOWS and user is not None and name is not None:
                mine = group["kind"].to_numpy()
                found[Kind(str(user), str(name))] = normal_of(errors[mine], means[mine], rule, overlap)
        return cls(rule=rule, all=normal_of(errors, means, rule, overlap), kinds=found)

    def of(self, kind: Kind) -> tuple[Normal, bool]:
        """What is normal for a job of this kind, and whether that was learned from its own kind."""
        own = self.kinds.get(kind)
        return (own, True) if own else (self.all, False)

    def to_json(self) -> dict[str, Any]:
        kinds = [
            {"user": kind.user, "name": kind.name, **to_json(normal)} for kind, normal in self.kinds.items()
        ]
        return {"rule": to_json(self.rule), "all": to_json(self.all), "kinds": kinds}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Thresholds":
        kinds = [(Kind(row.pop("user"), row.pop("name")), row) for row in map(dict, document["kinds"])]
        return cls(
            rule=from_json(document["rule"], Rule),
            all=from_json(document["all"], Normal),
            kinds={kind: from_json(row, Normal) for kind, row in kinds},
        )


def normal_of(errors: NDArray[Any], means: NDArray[Any], rule: Rule, overlap: float) -> Normal:
    """What is normal according to the errors of these windows, and the mean of each channel in each."""
    known = np.isfinite(means).any(axis=0)  # a source may lack some channels
    with np.errstate(invalid="ignore"):
        low, level, high = np.nanquantile(np.where(known, means, 0.0), (0.05, 0.5, 0.95), axis=0)
    return Normal(
        windows=len(errors),
        threshold=upper_quantile(errors, rule.rate, overlap=overlap),
        levels=level.tolist(),
        spreads=np.maximum(level - low, high - level).tolist(),
    )


def upper_quantile(errors: NDArray[Any], rate: float, *, overlap: float = 1) -> float:
    """The error that a share `rate` of windows exceeds, by a 90 % upper confidence bound.

    There are too few windows to observe such a rare error, so the tail is assumed to fall off as a power law (Weissman
    1978, with Hill's estimate of its index). The fewer independent windows there are, the wider the margin.
    """
    found = np.sort(np.maximum(np.asarray(errors, dtype=np.float64), RESOLUTION / 10))[::-1]
    number = len(found)
    tail = max(1, int(number * _TAIL), min(50, int(number * _TAIL * 4)))
    begin = found[min(tail, number - 1)]
    index = float(np.log(found[:tail] / begin).mean())
    bound = index * (1 + _Z / np.sqrt(max(1.0, tail / overlap)))
    beyond = max(1.0, tail / number / rate)
    return max(RESOLUTION, float(begin * beyond**bound))
