"""The contract of a trace model: windows in, reconstructions and embeddings out."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.traces.windows import Windows

__all__ = ["Scores", "TraceModel"]

Floats = NDArray[np.float32]


class Scores(NamedTuple):
    """A model's scores of some windows, in their order."""

    error: Floats
    """Mean squared error of the reconstruction over seconds and output channels."""
    by_channel: Floats
    """The same for each output channel: windows × outputs."""
    embedding: Floats
    """Windows × size."""


class TraceModel(Protocol):
    """A trained autoencoder. The same windows give the same answer."""

    @property
    def architecture(self) -> str:
        """`vanilla`, `node_graph` or `job_graph`."""
        ...

    @property
    def length(self) -> int:
        """Seconds in a window."""
        ...

    @property
    def channels(self) -> Sequence[str]:
        """The input."""
        ...

    @property
    def outputs(self) -> Sequence[str]:
        """What is reconstructed: the input and, for shares of a CPU's time, `other`."""
        ...

    def score(self, windows: Windows) -> Scores: ...

    def reconstruct(self, windows: Windows) -> Floats:
        """Windows × seconds × outputs."""
        ...

    def save(self, folder: Path) -> None:
        """Write it into an existing folder."""
        ...
