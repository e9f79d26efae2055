"""The trace model in use, or another version of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import NotFound
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    from tocsin.traces.model import TraceModel

__all__ = ["OpenModel", "open_trace_model"]

_DETECTOR = "traces"


@dataclass(frozen=True, slots=True)
class OpenModel:
    version: str
    model: "TraceModel"
    """Of CPUs."""
    threshold: float
    """The error from which a window of any job counts as unusual."""


def open_trace_model(app: App, version: str = "champion", cluster: str | None = None) -> OpenModel:
    """The CPU trace model of this version, or the one in use."""
    from tocsin.judge.plugins import find_detectors

    try:
        folder, card = app.registry.open_verified(_DETECTOR, version, stage=Stage.RUNNING, cluster=cluster)
    except NotFound:
        if app.registry.versions(_DETECTOR):
            raise
        raise NotFound("no trace model is trained yet; train one with: tocsin traces train") from None
    fitted: Any = find_detectors()[_DETECTOR].load(folder)
    return OpenModel(card.version, fitted.cpus.model, fitted.cpus.thresholds.all.threshold)
