"""A few boosters that answer as one: the mean of their log-odds, so that their contributions add up exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tocsin.models.engines import Booster, Engine, Floats, Matrix

__all__ = ["Ensemble", "load_ensemble"]

_EDGE = 1e-12


@dataclass(frozen=True, slots=True)
class Ensemble:
    """Averaging the best few of a search costs less than it gains: which of them is best is chance."""

    members: Sequence[Booster]

    def predict(self, X: Matrix) -> Floats:
        odds = np.zeros(len(X))
        for member in self.members:
            p = np.clip(member.predict(X), _EDGE, 1 - _EDGE)
            odds += np.log(p / (1 - p))
        return np.asarray(1 / (1 + np.exp(-odds / len(self.members))))

    def contributions(self, X: Matrix) -> Floats:
        """As of a booster: one column a feature and the base last; a row sums to its log-odds."""
        total = np.zeros((len(X), X.shape[1] + 1))
        for member in self.members:
            total += member.contributions(X)
        return np.asarray(total / len(self.members))

    def save(self, folder: Path, engine: Engine) -> None:
        for number, member in enumerate(self.members):
            member.save(folder / _file(number, engine))


def load_ensemble(folder: Path, engine: Engine, number: int, *, threads: int) -> Ensemble:
    return Ensemble([engine.load(folder / _file(n, engine), threads=threads) for n in range(number)])


def _file(number: int, engine: Engine) -> str:
    return f"model-{number + 1}{engine.suffix}"
