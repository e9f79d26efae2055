"""How well kinds of jobs can be told apart by their waveforms, by sampling interval (paper, Figure 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import InputError
from tocsin.traces.plane import Plane
from tocsin.traces.series import Series

__all__ = ["DRAWS", "INTERVALS", "Score", "coarser", "cut_waveforms", "silhouettes"]

INTERVALS = (1, 2, 5, 10, 20, 30)
"""Seconds between two samples."""
DRAWS = 30
"""Random subsets for each interval: the cost of a silhouette is quadratic in the number of waveforms."""
_FITTED = 1000  # maximum number of waveforms of a kind on which the principal components are fitted
_DRAWN = 60  # maximum number of waveforms of a kind in a draw
_FEWEST = 5

Way = Literal["pick", "mean"]
"""`pick` takes one second of every interval, as in the paper; `mean` averages, like counters that are read less often."""

_WAYS: tuple[Way, ...] = ("pick", "mean")


@dataclass(frozen=True, slots=True)
class Score:
    """The silhouette at one sampling interval: 1 is clear separation, 0 is overlap."""

    interval: int
    way: Way
    mean: float
    deviation: float

    def to_json(self) -> dict[str, Any]:
        figures = {"mean": round(self.mean, 4), "deviation": round(self.deviation, 4)}
        return {"interval": self.interval, "way": self.way, **figures}


def cut_waveforms(
    series: Sequence[Series], length: int, seed: int = 0
) -> tuple[NDArray[np.float64], list[str], dict[str, int]]:
    """Waveforms of `length` seconds that do not overlap, the kind of each, and the kinds with too few of them."""
    by_kind: dict[str, list[NDArray[np.float64]]] = {}
    for each in series:
        count = len(each.values) // length
        by_kind.setdefault(each.kind, []).extend(
            np.split(each.values[: count * length], count) if count else []
        )
    random = np.random.default_rng(seed)
    few = {kind: len(found) for kind, found in by_kind.items() if len(found) < _FEWEST}
    kept = {kind: found for kind, found in sorted(by_kind.items()) if kind not in few}
    if len(kept) < 2:
        raise InputError(
            f"{len(kept)} kinds of jobs have {_FEWEST} waveforms of {length} s or more; two are needed. Record "
            "more jobs, or choose a shorter --length"
        )
    chosen = {kind: random.permutation(len(found))[:_FITTED] for kind, found in kept.items()}
    waveforms = np.stack([kept[kind][place] for kind, places in chosen.items() for place in places])
    return waveforms, [kind for kind, places in chosen.items() for _ in places], few


def coarser(waveforms: NDArray[Any], interval: int, way: Way) -> NDArray[Any]:
    """The same waveforms, sampled every `interval` seconds."""
    points = waveforms.shape[1] // interval
    parts = waveforms[:, : points * interval].reshape(len(waveforms), points, interval, -1)
    return parts[:, :, -1] if way == "pick" else parts.mean(axis=2)


def silhouettes(
    waveforms: NDArray[Any], kinds: Sequence[str], *, seed: int = 0, draws: int = DRAWS
) -> list[Score]:
    """Mean and standard deviation over the draws at each interval with two or more samples, both ways."""
    from sklearn.metrics import silhouette_score  # type: ignore[import-untyped]  # it ships no types

    random = np.random.default_rng(seed)
    labels = np.asarray(kinds)
    subsets = [_draw(labels, random) for _ in range(draws)]
    scores = []
    for way in _WAYS:
        for interval in INTERVALS:
            if waveforms.shape[1] // interval < 2:
                continue
            sampled = coarser(waveforms, interval, way)
            points = Plane.fit(sampled).project(sampled)
            found = [silhouette_score(points[rows], labels[rows]) for rows in subsets]
            scores.append(Score(interval, way, float(np.mean(found)), float(np.std(found))))
    return scores


def _draw(labels: NDArray[Any], random: np.random.Generator) -> NDArray[np.int64]:
    """Some of each kind."""
    rows = [random.permutation(np.flatnonzero(labels == kind))[:_DRAWN] for kind in np.unique(labels)]
    return np.concatenate(rows)
