"""A linear autoencoder over windows, for channels of any unit: counters of jobs, metrics of servers.

Each window of `length` points is projected onto the directions that hold most of the variance of normal windows and
back. Channels are compared with what is normal for each, so that one that is hard to predict does not dominate. On
public server metrics this separates anomalies far better than the same projection of single points (docs/benchmarks.md).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from tocsin.core.errors import ModelError

__all__ = ["WINDOW", "LinearAutoencoder"]

Floats = NDArray[np.float32]

WINDOW = 20
"""Points in a window, unless there are too few or too many channels."""
_VARIANCE = 0.9  # share of the variance that the embedding keeps
_SMOOTH = 15  # points over which scores are averaged: anomalies that matter last longer than a point
_FAR = 8.0  # standard deviations at which values are clipped
_MOST_ERROR = 100.0  # times the normal error of a channel
_TRIM = 0.01  # share of the training windows left out of the second fit, since they may be contaminated
_WIDEST = 4000  # values in a window: the covariance has the square of it
_CHUNK = 2048


@dataclass(frozen=True, slots=True)
class LinearAutoencoder:
    """Scale, centre and directions of normal windows, and the normal error of each channel."""

    length: int
    mean: Floats
    scale: Floats
    centre: Floats  # length × channels
    directions: Floats  # (length × channels) × embedding
    normal: Floats  # error of each channel

    @classmethod
    def fit(cls, train: NDArray[Any], length: int = WINDOW) -> "LinearAutoencoder":
        """From a series of points × channels, most of which are normal; non-finite values are gaps."""
        values = np.asarray(train, dtype=np.float64)
        channels = values.shape[1]
        length = max(1, min(length, _WIDEST // max(1, channels), len(values) // 10))
        if len(values) < 100 or not channels:
            raise ModelError(
                f"{len(values)} points of {channels} channels are too few to learn from; 100 are needed"
            )
        finite = np.where(np.isfinite(values), values, np.nan)
        with np.errstate(all="ignore"):
            known = np.isfinite(finite).any(axis=0)
            mean = np.where(known, np.nanmean(np.where(known, finite, 0.0), axis=0), 0.0)
            spread = np.where(known, np.nanstd(np.where(known, finite, 0.0), axis=0), 0.0)
        # A channel that never changed has no scale of its own: a hundredth of its value is far away.
        still = spread <= 1e-6 * np.maximum(1e-3, np.abs(mean))
        scale = np.where(still, np.maximum(1e-2, np.abs(mean) * 1e-2), spread)
        model = cls(length, mean.astype(np.float32), scale.astype(np.float32), *_unfitted(length, channels))
        points = model._scaled(values)
        stride = max(1, length // 4)
        windows = (
            sliding_window_view(points, length, axis=0)[::stride]
            .swapaxes(1, 2)
            .reshape(-1, length * channels)
        )
        model = model._fitted(windows)
        error = np.concatenate([model._window_errors(part).mean(axis=1) for part in _chunks(windows)])
        return model._fitted(windows[error <= np.quantile(error, 1 - _TRIM)])._calibrated(points)

    def embed(self, series: NDArray[Any]) -> Floats:
        """The embedding of each window, one for each point from the `length`-th on."""
        points = self._scaled(series)
        windows = sliding_window_view(points, self.length, axis=0).swapaxes(1, 2)
        flat = (part.reshape(len(part), -1) - self.centre.ravel() for part in _chunks(windows))
        return np.concatenate([part @ self.directions for part in flat])

    def errors(self, series: NDArray[Any]) -> Floats:
        """The error of each point and channel, in multiples of the channel's normal error, over all windows with it."""
        relative: Floats = self._point_errors(self._scaled(series)) / self.normal
        return np.minimum(relative, np.float32(_MOST_ERROR))

    def score(self, series: NDArray[Any]) -> Floats:
        """How far each point is from normal, which is around one. Neighbouring points count, including later ones."""
        return np.asarray(uniform_filter1d(self.errors(series).mean(axis=1), _SMOOTH), dtype=np.float32)

    def _scaled(self, series: NDArray[Any]) -> Floats:
        values = np.asarray(series, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.mean):
            raise ModelError(f"a series of shape {values.shape}, but the model has {len(self.mean)} channels")
        if len(values) < self.length:
            raise ModelError(f"a series of {len(values)} points, but a window has {self.length}")
        points = np.clip((values - self.mean) / self.scale, -_FAR, _FAR)
        return np.nan_to_num(points, nan=0.0).astype(np.float32)

    def _fitted(self, windows: NDArray[Any]) -> "LinearAutoencoder":
        centre = windows.mean(axis=0, dtype=np.float64)
        covariance = np.zeros((windows.shape[1],) * 2)
        for part in _chunks(windows):
            off = part - centre
            covariance += off.T @ off
        variance, directions = np.linalg.eigh(covariance)
        share = np.cumsum(variance[::-1]) / max(float(variance.sum()), 1e-12)
        kept = min(int(np.searchsorted(share, _VARIANCE)) + 1, len(share))
        return LinearAutoencoder(
            self.length,
            self.mean,
            self.scale,
            centre.reshape(self.length, -1).astype(np.float32),
            np.ascontiguousarray(directions[:, ::-1][:, :kept], dtype=np.float32),
            self.normal,
        )

    def _calibrated(self, points: Floats) -> "LinearAutoencoder":
        normal = self._point_errors(points).mean(axis=0)
        floor = 1e-3 * float(normal.mean()) + 1e-6
        return LinearAutoencoder(
            self.length,
            self.mean,
            self.scale,
            self.centre,
            self.directions,
            (normal + floor).astype(np.float32),
        )

    def _window_errors(self, windows: NDArray[Any]) -> Floats:
        off = windows - self.centre.ravel()
        return np.asarray((off - (off @ self.directions) @ self.directions.T) ** 2, dtype=np.float32)

    def _point_errors(self, points: Floats) -> Floats:
        total = np.zeros_like(points)
        count = np.zeros((len(points), 1), dtype=np.float32)
        first = 0
        for part in _chunks(sliding_window_view(points, self.length, axis=0).swapaxes(1, 2)):
            errors = self._window_errors(part.reshape(len(part), -1)).reshape(part.shape)
            for place in range(self.length):
                total[first + place : first + place + len(part)] += errors[:, place]
                count[first + place : first + place + len(part)] += 1
            first += len(part)
        return total / count


def _unfitted(length: int, channels: int) -> tuple[Floats, Floats, Floats]:
    none = np.zeros((length * channels, 0), dtype=np.float32)
    return np.zeros((length, channels), dtype=np.float32), none, np.ones(channels, dtype=np.float32)


def _chunks(rows: NDArray[Any]) -> list[NDArray[Any]]:
    return [rows[first : first + _CHUNK] for first in range(0, len(rows), _CHUNK)]
