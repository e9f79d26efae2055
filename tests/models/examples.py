"""Small tables and logs to train on."""

import numpy as np
from numpy.typing import NDArray


def table(
    rows: int = 1500, features: int = 6, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Features with gaps, and outcomes that the first two tell something about."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)).astype(np.float32)
    y = (X[:, 0] - 0.5 * X[:, 1] + random.normal(size=rows) > 1).astype(np.float64)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, y


def log(rows: int = 1000, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Submit instants over some months and when each outcome became known."""
    random = np.random.default_rng(seed)
    submit = np.sort(random.integers(1_700_000_000, 1_710_000_000, size=rows))
    return submit, submit + random.integers(60, 10 * 86400, size=rows)
