"""Contributions to a probability: exact effects, summed by family, with a sentence each."""

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

    `effects` are of log-odds, one a feature with the base behind them; `at` gives the probabilities at log-odds.
    """
    total = float(effects.sum())
    families: dict[str, list[tuple[float, str, float]]] = {}
    for name, value, effect in zip(names, values, effects.tolist(), strict=False):
        families.setdefault(FEATURES[name].family, []).append((effect, name, value))
    sums = {family: sum(effect for effect, _, _ in members) for family, members in families.items()}
    without = at(total - np.array(list(sums.values())))
    moves = dict(zip(sums, (at(np.array(total)) - without).tolist(), strict=True))
    found = []
    for family, members in families.items():
        together = sums[family]
        agreeing = [member for member in members if member[0] * together > 0]
        if not agreeing:
            continue
        known = [member for member in agreeing if not isnan(member[2])] or agreeing
        _, name, value = max(known, key=lambda member: (abs(member[0]), member[1]))
        found.append(
            Contribution(
                feature=name,
                value=shown(name, value),
                effect=moves[family],
                text=sentence(name, value, history),
            )
        )
    return sorted(found, key=lambda reason: (-abs(reason.effect), reason.feature))[:_MOST]
