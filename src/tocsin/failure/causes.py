"""The likely cause of a failure: shares of causes among earlier failures, smoothed by those of the training set."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.history import recipe

__all__ = ["READ", "base_causes", "causes"]

_PRIOR = 5
"""The shares in the training set weigh as much as this many failures of the job's own kind."""
_KEYS = ("twin", "script", "name", "executable", "shape", "user")
"""The first of these with a failure is used, the closest first."""
_STATISTICS = ("ended", "failed", "unsuccessful", "timeout", "out_of_memory", "node")
READ = tuple(recipe.column(key, statistic) for key in _KEYS for statistic in _STATISTICS)
"""The statistics of history that causes are computed from."""


def base_causes(outcomes: pl.Series, target: Target) -> dict[str, float]:
    """The share of each cause among failures in the training set; empty if the source records only `failed`."""
    wanted = [str(outcome) for outcome in TARGETS[target]]
    counts = dict(outcomes.filter(outcomes.is_in(wanted)).value_counts().sort("outcome").rows())
    total = sum(counts.values())
    separate = len(counts) > 1 or str(Outcome.FAILED) not in counts
    return {name: count / total for name, count in counts.items()} if separate else {}


def causes(probability: float, history: Mapping[str, Any], base: Mapping[str, float]) -> dict[str, float]:
    """The probability of each cause; they add up to the job's probability."""
    if not base:
        return {}
    weights = {cause: share * _PRIOR for cause, share in base.items()}
    for cause, count in _counts(history, base).items():
        weights[cause] = weights.get(cause, 0.0) + count
    total = sum(weights.values())
    found = {cause: probability * weight / total for cause, weight in weights.items()}
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _counts(history: Mapping[str, Any], base: Mapping[str, float]) -> dict[str, float]:
    """How often each cause occurred in jobs of this kind."""
    for key in _KEYS:
        stats = {name: history.get(recipe.column(key, name)) or 0.0 for name in _STATISTICS}
        if not stats["unsuccessful"]:
            continue
        named = {
            str(Outcome.TIMEOUT): stats["timeout"],
            str(Outcome.OUT_OF_MEMORY): stats["out_of_memory"],
            str(Outcome.NODE_FAIL): stats["node"],
            str(Outcome.CANCELLED): stats["unsuccessful"] - stats["failed"],
        }
        rest = stats["failed"] - stats["timeout"] - stats["out_of_memory"] - stats["node"]
        named[str(Outcome.FAILED)] = rest
        return {name: max(0.0, share) * stats["ended"] for name, share in named.items() if name in base}
    return {}
