"""Channels with units are scaled by what is usual for each; rates of a CPU are never rescaled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scaling", "shares"]

Floats = NDArray[np.float32]

_FAR = 8.0  # values beyond this are clipped
_BETWEEN = (0.05, 0.95)  # a share of contaminated values does not change these quantiles


def shares(values: Floats) -> Floats:
    """Rates of a CPU as they are, between 0 and 1; unknown ones are 0."""
    return np.fmin(np.fmax(values, np.float32(0)), np.float32(1))


@dataclass(frozen=True, slots=True)
class Scaling:
    """The centre and the scale of each channel."""

    centre: Floats
    scale: Floats

    @classmethod
    def fit(cls, values: Floats) -> "Scaling":
        """From windows × seconds × channels; values that are not finite are unknown."""
        points = values.reshape(-1, values.shape[-1]).astype(np.float64)
        centre, scale = np.zeros(points.shape[1]), np.ones(points.shape[1])
        for channel, column in enumerate(points.T):
            known = column[np.isfinite(column)]
            if not len(known):
                continue
            low, middle, high = np.quantile(known, (_BETWEEN[0], 0.5, _BETWEEN[1]))
            centre[channel] = middle
            spread = (high - low) / 2 or float(known.std())
            # A channel that never changed has no scale of its own: a hundredth of its value is far away.
            still = spread <= 1e-6 * max(1e-3, abs(middle))
            scale[channel] = max(1e-2, abs(middle) * 1e-2) if still else spread
        most = np.finfo(np.float32).max / 16
        return cls(
            np.clip(centre, -most, most).astype(np.float32), np.clip(scale, 1e-30, most).astype(np.float32)
        )

    def scaled(self, values: Floats) -> Floats:
        """In multiples of the scale, clipped; unknown values are at the centre."""
        off = (values.astype(np.float64) - self.centre) / self.scale
        return np.nan_to_num(np.clip(off, -_FAR, _FAR), nan=0.0).astype(np.float32)

    def restored(self, values: Floats) -> Floats:
        """In the units of the channels."""
        return np.asarray(values * self.scale + self.centre, dtype=np.float32)
