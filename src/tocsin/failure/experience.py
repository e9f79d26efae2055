"""Experience from other clusters: trees over transferable statistics, and their blend with a cluster's own model."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.failure.columns import Columns
from tocsin.failure.feature_table import FeatureTable
from tocsin.failure.features import FEATURES, LocalTime, Share
from tocsin.failure.recent_scores import RecentScores
from tocsin.history.numbers import Numbers
from tocsin.models.engines import Booster, Floats, Matrix
from tocsin.models.metrics import measure

__all__ = ["YOUNG", "Experience", "Layout", "Rows", "blended", "named_for", "own_weight"]

_EDGE = 1e-6
"""Probabilities are kept this far from 0 and 1: no model is ever certain."""
_WEIGHTS = np.linspace(0.0, 1.0, 21)
_MOST = 0.9
"""The own model's weight before any evidence, on a cluster with a long history."""
_HALF = 200
"""Scored jobs with which it is half of that; they are two fifths of those that the own model learns from."""
_PARTS = 4
_FADING = 0.7
"""The weight of a part of the jobs relative to the next: the last own model is most like the one in use, and the last
days are most like the next ones."""
_HALF_KNOWN = 100
"""With this many jobs of the rarer outcome, a part has half its weight."""
_STIFFNESS = 0.1
"""The gain in AUC, on average over the parts, that moves the weight from one end to the other. Early own models rank
worse than the one in use: on METACENTRUM, where a weight of 0.04 ranked their jobs best, the blend was 0.088 of AUC behind
the own model."""
_RECENT_STIFFNESS = 0.02
"""The same for jobs that models in use scored: they show how good own models are now, so they move the weight more
easily, but a few of them do not."""
YOUNG = 400
"""Scored jobs of a model trained by hand before the 1,000 outcomes with which the service trains one: too few to split
into parts, and a habit that every such job shows should count."""
_AS_GOOD = 0.001
"""On a young cluster, weights with an AUC this close to the best count as equal: the middle one is used."""
_HALF_KNOWN_YOUNG = 200
_TARGET_SHARE = re.compile(r"^(?!nodes\.)(\w+)\.failed(?=_|$)")
"""A share of failures among earlier jobs; on nodes, failures are counted for every target."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The features of some jobs: those of the own model, and the transferable ones."""

    own: Matrix
    carried: Matrix | None = None


@dataclass(frozen=True, slots=True)
class Experience:
    """Trees that learned from other clusters."""

    columns: Columns
    booster: Booster

    def __post_init__(self) -> None:
        for name in self.columns.names:
            if isinstance(FEATURES[name].make, LocalTime | Share):
                raise ModelError(f'the feature "{name}" does not carry over between clusters; train again')


class Layout:
    """The features of the own model and of other clusters' experience, computed together because many are the same."""

    def __init__(self, own: Columns, carried: Columns) -> None:
        names = list(dict.fromkeys((*own.names, *carried.names)))
        self._table = FeatureTable(names, zone=own.zone, codes=own.codes)
        self._own = len(own.names)
        self._carried = [names.index(name) for name in carried.names]

    def rows(self, jobs: pl.DataFrame, history: pl.DataFrame | Numbers) -> Rows:
        """The same as the two matrices computed separately."""
        wide = self._table.values(jobs, history)
        own, carried = wide[:, : self._own], wide[:, self._carried]
        return Rows(np.ascontiguousarray(own), np.ascontiguousarray(carried))


def named_for(names: Sequence[str], target: Target) -> tuple[str, ...]:
    """The features for a target: the trees read the share of its outcomes among earlier jobs, whichever these are."""
    if target is Target.FAILED:
        return tuple(names)
    return tuple(_TARGET_SHARE.sub(rf"\1.{target}", name) for name in names)


def blended(own: Floats, others: Floats, own_weight: float) -> Floats:
    """Probabilities from the weighted mean of both log-odds."""
    odds = own_weight * _odds(own) + (1 - own_weight) * _odds(others)
    return np.asarray(1 / (1 + np.exp(-odds)))


def own_weight(own: Floats, others: Floats, failed: Floats, recent: RecentScores | None = None) -> float:
    """The weight of the own model, based on these jobs, unseen by both, in order of time, and on recent ones.

    If the own model learned from few jobs, it weighs little; with many, most. The ranking of the jobs changes that,
    part by part: own models of different parts gave the scores, so they must not be ranked together. How the models in
    use ranked the jobs of the last weeks changes it further.
    """
    weight = _trained_weight(own, others, failed)
    if recent is not None:
        weight = _moved(weight, recent.weeks(), _RECENT_STIFFNESS, power=2)
    return round(weight, 3)


def _trained_weight(own: Floats, others: Floats, failed: Floats) -> float:
    if len(failed) < YOUNG:
        return _young_weight(own, others, failed)
    usual = _MOST * len(failed) / (len(failed) + _HALF)
    parts = reversed(np.array_split(np.arange(len(failed)), _PARTS))
    return _moved(
        usual, ((own[rows], others[rows], failed[rows]) for rows in parts), _STIFFNESS * _PARTS, power=1
    )


def _moved(
    weight: float, parts: Iterable[tuple[Floats, Floats, Floats]], stiffness: float, *, power: int
) -> float:
    """The weight, moved towards the one that ranks the jobs of each part best; the latest part comes first.

    The larger the power, the less a part with few jobs of the rarer outcome counts.
    """
    cost = stiffness * (_WEIGHTS - weight) ** 2
    for age, (own, others, failed) in enumerate(parts):
        rarer = float(min(failed.sum(), len(failed) - failed.sum()))
        if rarer:
            auc = np.array([measure("auc", failed, blended(own, others, w)) for w in _WEIGHTS])
            evidence = rarer**power / (rarer**power + _HALF_KNOWN**power)
            cost += _FADING**age * evidence * (auc.max() - auc)
    return float(_WEIGHTS[np.argmin(cost)])


def _young_weight(own: Floats, others: Floats, failed: Floats) -> float:
    """Based on the ranking of all these jobs together; one half if they show little."""
    rarer = float(min(failed.sum(), len(failed) - failed.sum()))
    if not rarer:
        return 0.5
    auc = np.array([measure("auc", failed, blended(own, others, w)) for w in _WEIGHTS])
    best = float(_WEIGHTS[auc >= auc.max() - _AS_GOOD].mean())
    evidence = rarer**2 / (rarer**2 + _HALF_KNOWN_YOUNG**2)
    return 0.5 + evidence * (best - 0.5)


def _odds(p: Floats) -> Floats:
    inner = np.clip(p, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(inner / (1 - inner)))
