"""Drift: how far values have moved since a training, by the population stability index and by shares."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODERATE", "STRONG", "Drift", "stability"]

BINS = 10
MODERATE, STRONG = 0.1, 0.25
"""The usual limits of the index: below the first, nothing moved; from the second on, the population is different."""
_LEAST = 1e-4  # share of a bin that is empty on one side


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One thing that may have drifted: a feature by its index, a rate or a figure by its values."""

    name: str
    then: float | None = None
    """When the champion was trained..."""
    now: float | None = None
    """...and on the held-back data."""
    stability: float | None = None

    @property
    def strength(self) -> str | None:
        if self.stability is None:
            return None
        return "strong" if self.stability >= STRONG else "moderate" if self.stability >= MODERATE else "none"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "strength": self.strength}


def stability(then: NDArray[Any], now: NDArray[Any]) -> float | None:
    """The population stability index over deciles of the earlier values; missing values have a bin of their own."""
    if not len(then) or not len(now):
        return None
    before, after = (np.asarray(values, dtype=np.float64) for values in (then, now))
    known = before[~np.isnan(before)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])) if len(known) else np.empty(0)
    shares = [_shares(values, edges) for values in (before, after)]
    first, second = (np.maximum(share, _LEAST) for share in shares)
    return float(((second - first) * np.log(second / first)).sum())


def _shares(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    place = np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values, side="right"))
    counts = np.bincount(place, minlength=len(edges) + 2)
    return counts / len(values)
