"""Two principal components: a plane onto which waveforms and embeddings are projected for display."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import InputError

__all__ = ["Plane"]


@dataclass(frozen=True, slots=True)
class Plane:
    centre: NDArray[np.float64]
    axes: NDArray[np.float64]
    """Values × 2."""
    explained: tuple[float, float]
    """The share of the variance of the fitted points along each axis."""

    @classmethod
    def fit(cls, points: NDArray[Any]) -> "Plane":
        """The directions in which these points differ most; the same points give the same signs."""
        rows = np.asarray(points, dtype=np.float64).reshape(len(points), -1)
        if len(rows) < 3 or rows.shape[1] < 2:
            raise InputError(f"{len(rows)} points are too few for principal components; 3 are needed")
        centre = rows.mean(axis=0)
        variance, directions = np.linalg.eigh((rows - centre).T @ (rows - centre))
        axes = directions[:, [-1, -2]]
        axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
        total = max(float(variance.sum()), 1e-300)
        return cls(centre, axes, (float(variance[-1] / total), float(variance[-2] / total)))

    def project(self, points: NDArray[Any]) -> NDArray[np.float64]:
        flat = np.asarray(points, dtype=np.float64).reshape(len(points), -1)
        return np.asarray((flat - self.centre) @ self.axes)
