"""Selects the features of a model: those that matter and are not redundant, with a reason for each one left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError

__all__ = ["FLOOR", "MOST_ROWS", "Selection", "select"]

MOST_ROWS = 20_000
FLOOR = 1e-4
"""Minimum share of the total gain. A column of pure noise got 0.0001 to 0.009 on average, beside five real ones on
KTH-SP2, DOST-COARE and SDSC-BLUE (100 trees): less is useless, but more is not always useful."""


@dataclass(frozen=True, slots=True)
class Selection:
    kept: tuple[int, ...]
    """Columns in their order."""
    dropped: Mapping[str, str]
    """The reason for each feature left out."""


def select(
    X: NDArray[Any],
    names: Sequence[str],
    gains: NDArray[Any] | Sequence[float],
    *,
    most: int | None = None,
    correlation: float = 0.98,
) -> Selection:
    """`gains` are the importances from a first, quick model; of two redundant features, the more important stays.

    Features are redundant if Spearman's correlation exceeds `correlation`, on rows evenly spread over X. A missing
    value counts as one below all others, as a tree may take it.
    """
    gain = np.asarray(gains, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != len(names) or len(gain) != len(names):
        raise ModelError(
            f"{X.shape} values, {len(names)} names and {len(gain)} gains of features do not match"
        )
    dropped: dict[str, str] = {}
    alike, varied = _correlations(X)
    total = float(gain.sum())
    for place in np.flatnonzero(~varied).tolist():
        dropped[names[place]] = "has the same value in every job"
    useful = varied & (gain >= FLOOR * total) if total > 0 else varied
    for place in np.flatnonzero(varied & ~useful).tolist():
        dropped[names[place]] = f"has {gain[place] / total:.2g} of all gain, less than {FLOOR:g}"
    kept: list[int] = []
    places = np.flatnonzero(useful)
    for place in places[np.argsort(-gain[places], kind="stable")].tolist():
        nearest = max(kept, key=lambda other: alike[place, other], default=None)
        if nearest is not None and alike[place, nearest] > correlation:
            dropped[names[place]] = (
                f"repeats {names[nearest]} (correlation {alike[place, nearest]:.3f}), which has more gain"
            )
        elif most is not None and len(kept) >= most:
            dropped[names[place]] = f"is not among the {most} features with the most gain"
        else:
            kept.append(place)
    return Selection(tuple(sorted(kept)), dropped)


def _correlations(X: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The absolute Spearman correlation of all pairs, and which columns vary."""
    if not X.size:
        return np.zeros((X.shape[1], X.shape[1])), np.zeros(X.shape[1], dtype=bool)
    rows = np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).astype(np.int64)
    sample = X[rows].astype(np.float32)
    sample[np.isnan(sample)] = -np.inf
    ranked = pl.from_numpy(sample).select(pl.all().rank("average").cast(pl.Float32))
    ranks = np.ascontiguousarray(ranked.to_numpy().T)
    ranks -= ranks.mean(axis=1, dtype=np.float64, keepdims=True)
    length = np.sqrt((ranks**2).sum(axis=1, dtype=np.float64))
    varied = length > 0.5
    ranks[varied] /= length[varied, None]
    return np.abs(ranks @ ranks.T), varied
