"""The shipped failure models: experience from other clusters, for a cluster that has no model of its own."""

from pathlib import Path

from tocsin.core.stages import Stage
from tocsin.failure.fitted import FittedFailure

__all__ = ["BUILTIN", "shipped_model"]

BUILTIN = Path(__file__).parent / "builtin" / "failure"


def shipped_model(stage: Stage, *, threads: int = 1) -> FittedFailure | None:
    """The model for this stage, if there is one."""
    folder = BUILTIN / stage
    return FittedFailure.load(folder, threads=threads) if folder.is_dir() else None
