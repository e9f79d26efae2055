"""Contributions to a probability: exact effects, summed by family, with a sentence for each."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.verdict import Contribution
from tocsin.failure.feature_sentences import sentence, shown
from tocsin.failure.features import FEATURES

__all__ = ["top_contributions"]

_MOST = 5


def top_contributions(
    names: Sequence[str],
    values: Sequence[float],
    effects: NDArray[np.float64],
    history: Mapping[str, Any],
    at: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> list[Contribution]:
    """The families that moved the probability most; each is shown by its strongest feature.

    `effects` are log-odds, one per feature, followed by the base; `at` turns log-odds into probabilities. Each
    contribution is the step that its family adds to the probability of all weaker ones, so the contributions and the
    rest add up to the probability.
    """
    families: dict[str, list[tuple[float, str, float]]] = {}
    for name, value, effect in zip(names, values, effects.tolist(), strict=False):
        if effect:  # most features have none
            families.setdefault(FEATURES[name].family, []).append((effect, name, value))
    sums = {family: sum(effect for effect, _, _ in members) for family, members in families.items()}
    strongest = sorted((f for f in sums if sums[f]), key=lambda f: (-abs(sums[f]), f))[:_MOST]
    left = float(effects.sum()) - np.cumsum([0.0, *(sums[family] for family in strongest)])
    found = []
    for family, effect in zip(strongest, (-np.diff(at(left))).tolist(), strict=True):
        agreeing = [member for member in families[family] if member[0] * sums[family] > 0]
        known = [member for member in agreeing if not isnan(member[2])] or agreeing
        _, name, value = max(known, key=lambda member: (abs(member[0]), member[1]))
        found.append(
            Contribution(
                feature=name,
                value=shown(name, value),
                effect=effect,
                text=sentence(name, value, history),
            )
        )
    return sorted(found, key=lambda reason: (-abs(reason.effect), reason.feature))
