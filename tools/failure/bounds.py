"""Bounds on run time and memory as shares of the request, wide enough for each cluster that was left out."""

from collections.abc import Sequence

import numpy as np

from tocsin.core.outcomes import Target
from tocsin.failure.resources import KINDS, LEVEL, Quantiles, ResourceModel
from tocsin.models.engines import Booster, engine
from tools.failure.lessons import Lesson
from tools.failure.training import PARAMETERS

__all__ = ["bounds"]

ROUNDS = 50
FEWEST = 300
"""Completed jobs with request and use; a cluster with fewer teaches nothing about the resource."""
FEWEST_CLUSTERS = 3
"""With fewer clusters nothing says how a bound does on another one."""


def bounds(lessons: Sequence[Lesson]) -> tuple[ResourceModel, dict[str, dict[str, float]]]:
    """The model, and for each resource the share of jobs within the bound on each cluster that was left out."""
    quantiles, covered = {}, {}
    for kind in KINDS:
        taught = [
            each
            for each in lessons
            if each.target is Target.UNSUCCESSFUL and np.isfinite(each.used[kind.name]).sum() >= FEWEST
        ]
        if len(taught) < FEWEST_CLUSTERS:
            continue
        beyond = {}
        for left in taught:
            bound = _quantile([each for each in taught if each is not left], kind.name, LEVEL)
            used = left.used[kind.name]
            rows = np.isfinite(used)
            beyond[left.cluster] = used[rows], bound.predict(left.X[rows])
        offset = max(float(np.quantile(used - p, LEVEL)) for used, p in beyond.values())
        covered[kind.name] = {
            cluster: round(float((used <= np.minimum(p + offset, 0.0)).mean()), 4)
            for cluster, (used, p) in beyond.items()
        }
        quantiles[kind.name] = Quantiles(
            _quantile(taught, kind.name, 0.5), _quantile(taught, kind.name, LEVEL), offset, 0
        )
    return ResourceModel(quantiles, relative=True), covered


def _quantile(lessons: Sequence[Lesson], resource: str, level: float) -> Booster:
    rows = [np.isfinite(each.used[resource]) & each.teaches for each in lessons]
    weight = np.concatenate([np.full(int(flags.sum()), 1 / max(1, flags.sum())) for flags in rows])
    return engine("lightgbm").train(
        np.concatenate([each.X[flags] for each, flags in zip(lessons, rows, strict=True)]),
        np.concatenate([each.used[resource][flags] for each, flags in zip(lessons, rows, strict=True)]),
        weight=weight / weight.mean(),
        parameters={**PARAMETERS, "objective": "quantile", "alpha": level},
        rounds=ROUNDS,
    )
