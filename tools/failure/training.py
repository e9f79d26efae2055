"""How the shipped failure models are trained: every cluster counts alike, however many jobs it has."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tocsin.models.engines import Booster, engine
from tools.failure.lessons import Lesson

__all__ = ["PARAMETERS", "ROUNDS", "learned"]

ROUNDS = 100
PARAMETERS: Mapping[str, Any] = {
    "num_leaves": 31,
    "learning_rate": 0.06,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.4,
    "bagging_fraction": 0.6,
    "lambda_l2": 10.0,
    "max_bin": 63,
}
FEWEST = 3000
"""A cluster with fewer rows counts less."""


def learned(lessons: Sequence[Lesson]) -> Booster:
    """One model of all lessons; those of one cluster share its weight."""
    rows = Counter[str]()
    for lesson in lessons:
        rows[lesson.cluster] += int(lesson.teaches.sum())
    weights = [
        np.full(int(lesson.teaches.sum()), min(1.0, rows[lesson.cluster] / FEWEST) / rows[lesson.cluster])
        for lesson in lessons
    ]
    weight = np.concatenate(weights)
    return engine("lightgbm").train(
        np.concatenate([lesson.X[lesson.teaches] for lesson in lessons]),
        np.concatenate([lesson.failed[lesson.teaches] for lesson in lessons]),
        weight=weight / weight.mean(),
        parameters=PARAMETERS,
        rounds=ROUNDS,
    )
