"""Which source of alarms reported which job: the model's probability, shortages, or a rule-based detector."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget, Detector, Fitted, Known, Parts
from tocsin.core.frames import SCHEMA
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, severity
from tocsin.failure.findings import NAME, WILL_FAIL

__all__ = ["MODEL", "SHORTAGES", "Alarms", "Rules", "failure_alarms"]

MODEL = "model"
SHORTAGES = "shortages"
Alarms = Mapping[str, NDArray[np.bool_]]
"""By source, one flag per job."""


def failure_alarms(parts: Sequence[Parts]) -> dict[str, NDArray[np.bool_]]:
    return _alarms(parts, (MODEL, SHORTAGES))


class Rules:
    """Rule-based detectors, which need no training and warn beside the model."""

    def __init__(self, detectors: Mapping[str, Detector], known: Known, stage: Stage) -> None:
        empty, budget = pl.DataFrame(schema=SCHEMA), Budget(trials=0)
        self._fitted: dict[str, Fitted] = {
            name: detector.fit(empty, known, stage=stage, seed=0, budget=budget)
            for name, detector in detectors.items()
            if stage in detector.stages
        }
        self.missing: dict[str, str] = {}
        """Why a detector could not use all of its evidence."""

    def alarms(self, jobs: pl.DataFrame, known: Known, stage: Stage) -> dict[str, NDArray[np.bool_]]:
        found: dict[str, NDArray[np.bool_]] = {}
        for name, fitted in self._fitted.items():
            parts = fitted.assess(jobs, known, stage=stage)
            found |= _alarms(parts, (name,))
            if reason := next((each.missing[name] for each in parts if name in each.missing), None):
                self.missing[name] = reason
        return found


def _alarms(parts: Sequence[Parts], sources: Sequence[str]) -> dict[str, NDArray[np.bool_]]:
    found = {source: np.zeros(len(parts), dtype=bool) for source in sources}
    for row, part in enumerate(parts):
        for finding in part.findings:
            if severity(finding.level) >= severity(Level.WARNING):
                found[_source(finding)][row] = True
    return found


def _source(finding: Finding) -> str:
    if finding.detector != NAME:
        return finding.detector
    return MODEL if finding.kind == WILL_FAIL else SHORTAGES
