"""Active learning: which rows are worth a label, by the model's uncertainty and the density of similar rows."""

import numpy as np
from numpy.typing import NDArray

from tocsin.models.engines import Floats, Matrix

__all__ = ["worth_asking"]

_SAMPLE = 200
_CHUNK = 4096


def worth_asking(p: Floats, X: Matrix, *, seed: int = 0) -> NDArray[np.float64]:
    """For each row its uncertainty times its density (Settles and Craven 2008): 0 is useless, 1 is best.

    Density is the mean closeness to a random sample of rows, by ranks, so that no column outweighs the others.
    """
    unsure = 1 - np.abs(2 * np.asarray(p, dtype=np.float64) - 1)
    if len(X) < 2:
        return unsure
    draw = np.random.default_rng(seed).choice(len(X), min(_SAMPLE, len(X)), replace=False)
    ranks = _ranks(X, np.sort(X[draw], axis=0))
    seen = ranks[draw]
    density = np.empty(len(X))
    for first in range(0, len(X), _CHUNK):
        part = ranks[first : first + _CHUNK]
        density[first : first + _CHUNK] = 1 - np.mean(
            [np.abs(part - other).mean(axis=1) for other in seen], axis=0
        )
    return np.asarray(unsure * density)


def _ranks(X: Matrix, ordered: Matrix) -> NDArray[np.float32]:
    """The rank of each value among the sampled ones, from 0 to 1; NaN ranks last."""
    found = np.empty(X.shape, dtype=np.float32)
    for column in range(X.shape[1]):
        found[:, column] = np.searchsorted(ordered[:, column], X[:, column]) / len(ordered)
    return found
