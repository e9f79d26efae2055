"""A small trace model for tests that are not about autoencoders: PCA of whole windows."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, MODES
from tocsin.traces.detector import TracesDetector
from tocsin.traces.model import Scores
from tocsin.traces.thresholds import Rule
from tocsin.traces.windows import Windows

Floats = NDArray[np.float32]
DIRECTIONS = 3


@dataclass(frozen=True)
class PcaModel:
    length: int
    channels: Sequence[str]
    centre: Floats
    scale: Floats
    directions: Floats
    architecture: str = "vanilla"

    @property
    def outputs(self) -> Sequence[str]:
        return MODES if tuple(self.channels) == CPU_CHANNELS else self.channels

    @classmethod
    def fit(cls, windows: Windows) -> "PcaModel":
        values = np.nan_to_num(windows.values.astype(np.float64))
        shares = tuple(windows.channels) == CPU_CHANNELS
        scale = np.ones(values.shape[2]) if shares else np.maximum(np.abs(values).mean(axis=(0, 1)), 1e-9)
        flat = (values / scale).reshape(len(values), -1)
        centre = flat.mean(axis=0)
        off = flat - centre
        _, directions = np.linalg.eigh(off.T @ off)
        kept = directions[:, ::-1][:, :DIRECTIONS]
        parts = (part.astype(np.float32) for part in (centre, scale, kept))
        return cls(windows.length, tuple(windows.channels), *parts)

    def score(self, windows: Windows) -> Scores:
        scale = self._out_scale()
        off = (self._given(windows) - self.reconstruct(windows)) / scale
        by_channel = (off**2).mean(axis=1)
        flat = self._flat(windows)
        # the embedding is not compared with anything in these tests
        return Scores(by_channel.mean(axis=1), by_channel, flat @ self.directions)

    def reconstruct(self, windows: Windows) -> Floats:
        flat = self._flat(windows)
        back = (flat @ self.directions) @ self.directions.T + self.centre
        values = back.reshape(len(windows), self.length, len(self.channels)) * self.scale
        return self._with_other(values)

    def save(self, folder: Path) -> None:
        arrays = {name: getattr(self, name).tolist() for name in ("centre", "scale", "directions")}
        document = {"length": self.length, "channels": list(self.channels), **arrays}
        (folder / "pca.json").write_text(json.dumps(document))

    @classmethod
    def load(cls, folder: Path) -> "PcaModel":
        document = json.loads((folder / "pca.json").read_text())
        arrays = (np.asarray(document[name], np.float32) for name in ("centre", "scale", "directions"))
        return cls(document["length"], tuple(document["channels"]), *arrays)

    def _flat(self, windows: Windows) -> Floats:
        values = np.nan_to_num(windows.values) / self.scale
        return values.reshape(len(windows), self.length * len(self.channels)) - self.centre

    def _given(self, windows: Windows) -> Floats:
        return self._with_other(np.nan_to_num(windows.values))

    def _with_other(self, values: Floats) -> Floats:
        if self.outputs != MODES:
            return values
        return np.concatenate([values, 1 - values.sum(axis=2, keepdims=True)], axis=2)

    def _out_scale(self) -> Floats:
        return np.append(self.scale, np.float32(1)) if self.outputs == MODES else self.scale


def train(
    windows: Windows,
    *,
    validation: Windows,
    seed: int,
    seconds: float | None,
    progress: Callable[[int, int], None] | None,
) -> PcaModel:
    return PcaModel.fit(windows)


def pca_detector(**rule: float) -> TracesDetector:
    return TracesDetector(train=train, load_model=PcaModel.load, rule=Rule(**rule))  # type: ignore[arg-type]
