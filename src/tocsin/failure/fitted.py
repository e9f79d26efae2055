"""A trained failure model that answers: probabilities for many jobs at once, and one job with its reasons."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Parts, Past
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Contribution, Failure, Finding, Level
from tocsin.failure.causes import READ, causes
from tocsin.failure.columns import Columns
from tocsin.failure.ensemble import Ensemble
from tocsin.failure.features import FEATURES
from tocsin.failure.training import SHARE
from tocsin.failure.words import sentence, shown
from tocsin.models.calibration import Calibrator
from tocsin.models.cards import Card, Window
from tocsin.models.engines import engine
from tocsin.models.metrics import Metric
from tocsin.models.thresholds import Threshold

__all__ = ["FILE", "NAME", "VERSION", "FittedFailure"]

NAME = "failure"
VERSION = 1
"""Of the form in which a model is saved."""
FILE = "failure.json"
_REASONS = 5
_NO_USER = "the job names no user, so only its request and the cluster's past speak"
_NOT_REACHED = "the job has not reached this stage, so nothing can be said of it here"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFailure:
    """A model for one stage, with all that its card tells."""

    columns: Columns
    target: Target
    engine: str
    model: Ensemble
    calibrator: Calibrator
    threshold: Threshold
    table: list[Threshold]
    figures: list[Metric]
    parameters: Mapping[str, Any]
    search: Mapping[str, Any]
    brier: Mapping[str, float]
    causes: Mapping[str, float]
    window: Window
    rows: int

    def probabilities(self, jobs: pl.DataFrame, history: pl.DataFrame) -> NDArray[np.float64]:
        """One a row, calibrated; `history` is what the past tells of these jobs at the model's stage."""
        return self.calibrator.apply(self.model.predict(self.columns.matrix(jobs, history)))

    def assess(self, jobs: pl.DataFrame, past: Past, *, stage: Stage) -> list[Parts]:
        self._check(stage)
        if not jobs.height:
            return []
        history = past.features(jobs, stage=stage)
        p = self.probabilities(jobs, history)
        missing, told = _missing(jobs, history, stage), history.select(READ)
        return [
            Parts(missing=said)
            if said is not None and "failure" in said
            else self._parts(probability, told, row, said)
            for row, (probability, said) in enumerate(zip(p.tolist(), missing, strict=True))
        ]

    def explain(self, job: pl.DataFrame, past: Past, *, stage: Stage) -> Parts:
        self._check(stage)
        history = past.features(job, stage=stage)
        said = _missing(job, history, stage)[0]
        if said is not None and "failure" in said:
            return Parts(missing=said)
        X = self.columns.matrix(job, history)
        row = history.row(0, named=True)
        raw = float(self.model.predict(X)[0])
        reasons = self._reasons(X[0].tolist(), self.model.contributions(X)[0], row)
        p = float(self.calibrator.apply(np.array([raw]))[0])
        return self._parts(p, history.select(READ), 0, said, reasons, always=True)

    def save(self, folder: Path) -> None:
        """The booster in its native text, and all else as JSON."""
        document = {
            "version": VERSION,
            "columns": self.columns.to_json(),
            "target": str(self.target),
            "engine": self.engine,
            "calibrator": self.calibrator.to_json(),
            "threshold": self.threshold.to_json(),
            "table": [row.to_json() for row in self.table],
            "figures": [asdict(figure) for figure in self.figures],
            "parameters": dict(self.parameters),
            "search": dict(self.search),
            "brier": dict(self.brier),
            "causes": dict(self.causes),
            "window": asdict(self.window),
            "rows": self.rows,
        }
        text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
        (folder / FILE).write_text(text + "\n", "utf-8")
        self.model.save(folder, engine(self.engine))

    def card(self, *, created: int) -> Card:
        """For the registry. Its figures are of the rehearsal: the same training on the first jobs, asked about the rest."""
        split = f"first {SHARE:.0%} of the training by time, the rest predicted and calibrated on"
        return Card(
            detector=NAME,
            stage=self.columns.stage,
            target=str(self.target),
            engine=self.engine,
            created=created,
            window=self.window,
            rows=self.rows,
            features=self.columns.names,
            parameters=self.parameters,
            search=self.search,
            calibration={**self.calibrator.to_json(), "brier": dict(self.brier)},
            thresholds=[self.threshold.to_json()],
            figures=[f.figure(stage=self.columns.stage, split=split, data="training") for f in self.figures],
        )

    def _check(self, stage: Stage) -> None:
        if stage is not self.columns.stage:
            raise ModelError(
                f"this model answers at {self.columns.stage}, not at {stage}; train one for {stage}"
            )

    def _parts(
        self,
        p: float,
        told: pl.DataFrame,
        row: int,
        missing: dict[str, str] | None,
        reasons: list[Contribution] | None = None,
        *,
        always: bool = False,
    ) -> Parts:
        threshold = self.threshold.value
        rings = p >= threshold
        by = causes(p, told.row(row, named=True), self.causes) if self.causes and (rings or always) else {}
        failure = Failure(
            probability=p,
            threshold=threshold,
            will_fail=rings,
            target=self.target,
            causes=by,
            contributions=reasons or [],
        )
        findings = [self._finding(p, by, reasons or [])] if rings else []
        return Parts(findings=findings, failure=failure, missing=missing or {})

    def _finding(self, p: float, by: Mapping[str, float], reasons: list[Contribution]) -> Finding:
        likely = f", most likely {next(iter(by)).replace('_', ' ')}" if by else ""
        word = "fail" if self.target is Target.FAILED else "be unsuccessful"
        return Finding(
            detector=NAME,
            kind="will_fail",
            level=Level.WARNING,
            text=f"the job will {word} with a probability of {p:.0%}{likely}",
            score=p,
            threshold=self.threshold.value,
            evidence=[reason.text for reason in reasons if reason.effect > 0],
        )

    def _reasons(
        self, values: list[float], effects: NDArray[np.float64], history: Mapping[str, Any]
    ) -> list[Contribution]:
        """The families that moved the probability most; each speaks through the feature that did most in it."""
        total = float(effects.sum())
        families: dict[str, list[tuple[float, str, float]]] = {}
        for name, value, effect in zip(self.columns.names, values, effects.tolist(), strict=False):
            families.setdefault(FEATURES[name].family, []).append((effect, name, value))
        found = []
        for members in families.values():
            together = sum(effect for effect, _, _ in members)
            agreeing = [member for member in members if member[0] * together > 0]
            if not agreeing:
                continue
            told = [member for member in agreeing if not isnan(member[2])] or agreeing
            _, name, value = max(told, key=lambda member: (abs(member[0]), member[1]))
            found.append(
                Contribution(
                    feature=name,
                    value=shown(name, value),
                    effect=self._at(total) - self._at(total - together),
                    text=sentence(name, value, history),
                )
            )
        return sorted(found, key=lambda reason: (-abs(reason.effect), reason.feature))[:_REASONS]

    def _at(self, odds: float) -> float:
        """The calibrated probability at these log-odds."""
        p = 1 / (1 + exp(-max(-40.0, min(40.0, odds))))
        return float(self.calibrator.apply(np.array([p]))[0])


def _missing(jobs: pl.DataFrame, history: pl.DataFrame, stage: Stage) -> list[dict[str, str] | None]:
    """For each job what could not be said; None where nothing is amiss."""
    rows: list[dict[str, str] | None] = [None] * jobs.height
    before = history["user.submitted"].fill_null(0).eq(0).to_numpy()
    for row in np.flatnonzero(before).tolist():
        user = jobs["user"][row]
        rows[row] = {
            "failure.history": f'no earlier job of the user "{user}" is known, so only the request and the cluster\'s past speak'
            if user is not None
            else _NO_USER
        }
    if stage is not Stage.SUBMIT:
        waits = jobs["end" if stage is Stage.END else "start"].is_null().to_numpy()
        for row in np.flatnonzero(waits).tolist():
            rows[row] = {"failure": _NOT_REACHED}
    return rows
