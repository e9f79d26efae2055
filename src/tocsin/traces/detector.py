"""The detector `traces`: running jobs whose traces are no longer normal for their kind."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tocsin.core.detector import Budget, Known, Need
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.traces.alarms import NAME

if TYPE_CHECKING:  # whoever checks a script finds all detectors, but needs no model of this one
    from tocsin.traces.fitted import FittedTraces
    from tocsin.traces.fitting import Train
    from tocsin.traces.model import TraceModel
    from tocsin.traces.thresholds import Rule
    from tocsin.traces.windows import Windows

__all__ = ["DETECTOR", "TracesDetector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesDetector:
    """How to train; the result is a FittedTraces."""

    name: str = NAME
    stages: Sequence[Stage] = (Stage.RUNNING,)
    learns: bool = True
    needs: Collection[Need] = (Need.WINDOWS,)
    architecture: str = "vanilla"
    ensemble: int = 1
    rule: "Rule | None" = None
    train: "Train | None" = None
    """By default, an autoencoder."""
    load_model: "Callable[[Path], TraceModel] | None" = None

    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> "FittedTraces":
        """Train on the windows of ended jobs, all of which count as normal."""
        assert stage is Stage.RUNNING, "it is the only one"
        until = jobs.select(pl.max_horizontal(pl.col("known_at").max(), pl.col("end").max())).item()
        return self.fit_windows(
            known.windows(jobs, until or 0),
            jobs.select(key_text(), "user", "name"),
            seed=seed,
            seconds=budget.seconds,
            progress=budget.progress,
        )

    def fit_windows(
        self,
        windows: pl.DataFrame,
        kinds: pl.DataFrame,
        *,
        stride: int | None = None,
        interval: int = 1,
        seed: int = 0,
        seconds: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> "FittedTraces":
        """As `traces.fitting.fit_traces`, with this detector's options."""
        from tocsin.traces.fitting import fit_traces

        return fit_traces(
            windows,
            kinds,
            self.train or self._train,
            rule=self.rule,
            stride=stride,
            interval=interval,
            seed=seed,
            seconds=seconds,
            progress=progress,
        )

    def load(self, folder: Path) -> "FittedTraces":
        from tocsin.traces.fitted import FittedTraces

        if self.load_model is not None:
            return FittedTraces.load(folder, self.load_model)
        from tocsin.traces.onnx_model import load_model

        return FittedTraces.load(folder, load_model)

    def _train(
        self,
        windows: "Windows",
        *,
        validation: "Windows",
        seed: int,
        seconds: float | None,
        progress: Callable[[int, int], None] | None,
    ) -> "TraceModel":
        from tocsin.traces.training import train

        return train(
            windows,
            architecture=self.architecture,
            seed=seed,
            ensemble=self.ensemble,
            validation=validation,
            seconds=seconds,
            progress=progress,
        )


DETECTOR = TracesDetector()
