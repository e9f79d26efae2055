"""Clusters by K-means or a Gaussian mixture: fitted with scikit-learn, assigned with numpy alone."""

import warnings
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Clusters", "Curves", "Method", "count_clusters", "fit_clusters", "knee"]

Method = Literal["mixture", "kmeans"]
Floats = NDArray[np.float64]

MOST_CLUSTERS = 10
_SEARCH_ROWS = 5_000
_FLOOR = 0.02
"""Smallest variance of a mixture component, on columns of variance 1. Jobs request round numbers: without a floor,
components would shrink to a point and BIC would fall without end."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """K-means has centres only; a mixture also has weights and shapes (Cholesky factors of its precisions)."""

    method: Method
    centres: Floats
    weights: Floats | None = None
    shapes: Floats | None = None

    def assign(self, points: Floats) -> NDArray[np.int64]:
        """The cluster of each point."""
        if self.weights is None or self.shapes is None:
            squares = (points**2).sum(axis=1)[:, None] - 2 * points @ self.centres.T
            return np.asarray(np.argmin(squares + (self.centres**2).sum(axis=1), axis=1), dtype=np.int64)
        scores = np.empty((len(points), len(self.centres)))
        for part, (centre, shape) in enumerate(zip(self.centres, self.shapes, strict=True)):
            away = (points - centre) @ shape
            scores[:, part] = np.log(np.diag(shape)).sum() - 0.5 * (away**2).sum(axis=1)
        return np.asarray(np.argmax(scores + np.log(self.weights), axis=1), dtype=np.int64)

    def ordered(self, order: NDArray[np.int64]) -> "Clusters":
        """The same clusters in another order; clusters that `order` leaves out are dropped."""
        return Clusters(
            self.method,
            self.centres[order],
            None if self.weights is None else self.weights[order],
            None if self.shapes is None else self.shapes[order],
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "centres": self.centres.tolist(),
            "weights": None if self.weights is None else self.weights.tolist(),
            "shapes": None if self.shapes is None else self.shapes.tolist(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], columns: int) -> "Clusters":
        """Read what `to_json` wrote, for points with `columns` columns; anything else raises a ValueError."""
        method = document["method"]
        if method not in ("mixture", "kmeans"):
            raise ValueError(method)
        count = len(document["centres"])
        centres = np.array(document["centres"], dtype=np.float64).reshape(count, columns)
        weights, shapes = None, None
        if method == "mixture":
            weights = np.array(document["weights"], dtype=np.float64).reshape(count)
            shapes = np.array(document["shapes"], dtype=np.float64).reshape(count, columns, columns)
            if not (weights > 0).all() or not (np.diagonal(shapes, axis1=1, axis2=2) > 0).all():
                raise ValueError("a weight or a shape is not positive")
        if not all(np.isfinite(a).all() for a in (centres, weights, shapes) if a is not None):
            raise ValueError("a number is not finite")
        return cls(method, centres, weights, shapes)


@dataclass(frozen=True, slots=True)
class Curves:
    """How well each number of clusters fits, and the knee of both curves."""

    numbers: list[int]
    distortion: list[float]
    """Within-cluster sum of squares, relative to one cluster (HPE Fig. 3)."""
    bic: list[float]
    elbow: int
    bic_knee: int


def count_clusters(points: Floats, seed: int) -> Curves:
    """Both curves, from one cluster upwards, on a sample of the rows."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped]  # it ships no types

    sample = _spread(points, _SEARCH_ROWS)
    numbers = list(range(1, min(MOST_CLUSTERS, len(np.unique(sample, axis=0))) + 1))
    distortion, bic = [], []
    with _quietly():
        for number in numbers:
            distortion.append(float(KMeans(number, n_init=3, random_state=seed).fit(sample).inertia_))
            bic.append(float(_mixture(number, seed).fit(sample).bic(sample)))
    whole = distortion[0] or 1.0
    # More clusters always fit at least as well; if the search found less, that is not a knee.
    falling = np.minimum.accumulate(np.array(bic)) if bic else np.zeros(0)
    return Curves(
        numbers,
        [value / whole for value in distortion],
        bic,
        knee(numbers, np.minimum.accumulate(np.array(distortion))),
        knee(numbers, falling),
    )


def knee(numbers: list[int], values: Floats) -> int:
    """The knee of a falling curve: the point farthest below the line from its first to its last point."""
    if len(numbers) < 3 or values[0] <= values[-1]:
        return numbers[0] if values[0] <= values[-1] else numbers[-1]
    along = np.linspace(0, 1, len(numbers))
    height = (values - values[-1]) / (values[0] - values[-1])
    return numbers[int(np.argmax(1 - along - height))]


def fit_clusters(points: Floats, number: int, method: Method, seed: int) -> Clusters:
    """Fit `number` clusters; a mixture may end with fewer, because empty ones are dropped."""
    from sklearn.cluster import KMeans

    with _quietly():
        if method == "kmeans":
            found = KMeans(number, n_init=4, random_state=seed).fit(points)
            return Clusters("kmeans", np.asarray(found.cluster_centers_, dtype=np.float64))
        fitted = _mixture(number, seed).fit(points)
    clusters = Clusters(
        "mixture",
        np.asarray(fitted.means_, dtype=np.float64),
        np.asarray(fitted.weights_, dtype=np.float64),
        np.asarray(fitted.precisions_cholesky_, dtype=np.float64),
    )
    used = np.unique(clusters.assign(points))
    return clusters.ordered(used)


def _mixture(number: int, seed: int) -> Any:
    from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]  # it ships no types

    return GaussianMixture(number, reg_covar=_FLOOR, random_state=seed)


def _spread(points: Floats, most: int) -> Floats:
    return points[np.linspace(0, len(points) - 1, min(most, len(points))).astype(np.int64)]


@contextmanager
def _quietly() -> "Iterator[None]":
    """One thread, so that sums are the same on every machine; no warning when the iteration limit is reached."""
    from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped]  # it ships no types
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ConvergenceWarning)
        stack.enter_context(threadpool_limits(1))
        yield
