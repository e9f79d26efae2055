"""Contributions to a probability: exact effects, summed by family, with a sentence for each."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.verdict import Contribution
from tocsin.failure.feature_sentences import no_outcome, sentence, shown, unknown_past
from tocsin.failure.features import FEATURES

__all__ = ["top_contributions"]

_MOST = 5
_Member = tuple[float, str, float]
"""The effect, name and value of a feature."""


def top_contributions(
    names: Sequence[str],
    values: Sequence[float],
    effects: NDArray[np.float64],
    history: Mapping[str, Any],
    at: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> list[Contribution]:
    """The families that moved the probability most; each is shown by its strongest feature.

    Families that say only that nothing is known yet about the same past are one reason.

    `effects` are log-odds, one per feature, followed by the base; `at` turns log-odds into probabilities. Each
    contribution is the step that its family adds to the probability of all weaker ones, so the contributions and the
    rest add up to the probability.
    """
    families: dict[str, list[_Member]] = {}
    for name, value, effect in zip(names, values, effects.tolist(), strict=False):
        if effect:  # most features have none
            families.setdefault(FEATURES[name].family, []).append((effect, name, value))
    groups: dict[tuple[str | None, str], list[_Member]] = {}
    for family, members in families.items():
        if _sum(members):
            _, name, value = _strongest(members)
            past = unknown_past(name, value, history)
            groups.setdefault((past, "" if past else family), []).extend(members)
    top = sorted(groups.items(), key=lambda group: (-abs(_sum(group[1])), str(group[0])))[:_MOST]
    left = float(effects.sum()) - np.cumsum([0.0, *(_sum(members) for _, members in top)])
    found = []
    for ((past, _), members), effect in zip(top, (-np.diff(at(left))).tolist(), strict=True):
        _, name, value = _strongest(members)
        text = no_outcome(past) if past else sentence(name, value, history)
        found.append(Contribution(feature=name, value=shown(name, value), effect=effect, text=text))
    return sorted(found, key=lambda reason: (-abs(reason.effect), reason.feature))


def _sum(members: Sequence[_Member]) -> float:
    return sum(effect for effect, _, _ in members)


def _strongest(members: Sequence[_Member]) -> _Member:
    """The feature that moved the probability most in the direction of all; one with a value, if there is one."""
    total = _sum(members)
    agreeing = [member for member in members if member[0] * total > 0] or members
    known = [member for member in agreeing if not isnan(member[2])] or agreeing
    return max(known, key=lambda member: (abs(member[0]), member[1]))
