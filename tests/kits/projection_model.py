"""The simplest trace model: a projection of whole windows, so that tests of its users need no autoencoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, MODES
from tocsin.traces.model import Scores
from tocsin.traces.windows import Windows

Floats = NDArray[np.float32]
FILE = "projection.npz"


@dataclass(frozen=True)
class ProjectionModel:
    centre: Floats
    directions: Floats
    length: int
    architecture: str = "vanilla"
    channels: Sequence[str] = CPU_CHANNELS
    outputs: Sequence[str] = MODES

    @classmethod
    def fit(cls, windows: Windows, size: int = 3) -> "ProjectionModel":
        flat = windows.values.reshape(len(windows), -1).astype(np.float64)
        centre = flat.mean(axis=0)
        _, directions = np.linalg.eigh((flat - centre).T @ (flat - centre))
        kept = directions[:, ::-1][:, :size]
        return cls(centre.astype(np.float32), kept.astype(np.float32), windows.length)

    def score(self, windows: Windows) -> Scores:
        by_channel = ((_all_modes(windows.values) - self.reconstruct(windows)) ** 2).mean(axis=1)
        return Scores(by_channel.mean(axis=1), by_channel, self._embed(windows))

    def reconstruct(self, windows: Windows) -> Floats:
        flat = self._embed(windows) @ self.directions.T + self.centre
        return _all_modes(flat.reshape(windows.values.shape))

    def save(self, folder: Path) -> None:
        np.savez(folder / FILE, centre=self.centre, directions=self.directions, length=self.length)

    @classmethod
    def load(cls, folder: Path) -> "ProjectionModel":
        with np.load(folder / FILE) as arrays:
            return cls(arrays["centre"], arrays["directions"], int(arrays["length"]))

    def _embed(self, windows: Windows) -> Floats:
        off: Floats = windows.values.reshape(len(windows), -1) - self.centre
        return off @ self.directions


def _all_modes(values: Floats) -> Floats:
    return np.concatenate([values, 1 - values.sum(axis=2, keepdims=True)], axis=2)


class ProjectionDetector:
    """Loads a projection where the trace detector would load its models."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def load(self, folder: Path) -> Any:
        thresholds = SimpleNamespace(all=SimpleNamespace(threshold=self.threshold))
        return SimpleNamespace(
            cpus=SimpleNamespace(model=ProjectionModel.load(folder), thresholds=thresholds)
        )
