"""Asks every detector about some jobs. A detector that fails is named as missing and does not affect the others."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

import polars as pl

from tocsin.core.detector import Fitted, Known, Parts
from tocsin.core.fields import FIELDS
from tocsin.core.frames import SCHEMA
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS, Finding, Level

__all__ = [
    "Answer",
    "DetectorModels",
    "Model",
    "as_known",
    "assess",
    "assess_and_explain",
    "error_text",
    "explain_alarms",
]

_MOST_FAILURES = 100  # rows that a detector may fail on before it is skipped for the rest of the frame
_NOTHING = Parts()


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted detector, and the version to name in verdicts."""

    fitted: Fitted
    version: str


@dataclass(frozen=True, slots=True)
class DetectorModels:
    """A detector for the judge: a model for each stage, or the reason why there is none."""

    models: Mapping[Stage, Model] = field(default_factory=dict)
    missing: Mapping[Stage, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """One detector's parts on one job, wherever they were computed."""

    detector: str
    version: str | None
    """None if the detector could not answer; then its parts name the reason."""
    parts: Parts
    asked: bool = True
    """False if it has no model for the stage."""

    @property
    def checked(self) -> bool:
        """Whether it checked the job: nothing is missing, or it gave a prediction or classification anyway."""
        parts = self.parts
        return self.version is not None and bool(not parts.missing or parts.failure or parts.workload)


def as_known(jobs: pl.DataFrame, stage: Stage) -> pl.DataFrame:
    """The jobs without the fields that become known only after the stage."""
    if jobs.height == 1:
        row = jobs.row(0, named=True)
        later = [name for name in _later(stage) if row.get(name, ...) is not None]
    else:
        empty = {column.name for column in jobs.get_columns() if column.null_count() == jobs.height}
        later = [name for name in _later(stage) if name not in empty]
    return (
        jobs.with_columns(pl.lit(None, dtype=SCHEMA[name]).alias(name) for name in later) if later else jobs
    )


@cache
def _later(stage: Stage) -> tuple[str, ...]:
    return tuple(name for name, known in FIELDS.items() if not stage.knows(known.stage))


def assess_and_explain(
    detectors: Mapping[str, DetectorModels],
    jobs: pl.DataFrame,
    known: Known,
    stage: Stage,
    *,
    explain: bool = False,
) -> list[list[Answer]]:
    """For each job, the answers of all detectors. Alarms are explained; with `explain`, every answer is."""
    answers = assess(detectors, jobs, known, stage, explain=explain)
    return answers if explain else explain_alarms(detectors, jobs, answers, known, stage)


def assess(
    detectors: Mapping[str, DetectorModels],
    jobs: pl.DataFrame,
    known: Known,
    stage: Stage,
    *,
    explain: bool = False,
) -> list[list[Answer]]:
    """For each job, the answers of all detectors, unexplained; with `explain`, every one is explained."""
    answers: list[list[Answer]] = [[] for _ in range(jobs.height)]
    if jobs.is_empty():
        return answers
    shown = as_known(jobs, stage)
    for name, detector in detectors.items():
        model = detector.models.get(stage)
        if model is None:
            if reason := detector.missing.get(stage):
                for each in answers:
                    each.append(replace(_unanswered(name, reason), asked=False))
            continue
        asked = _Asked(name, model, known, stage)
        for each, answer in zip(
            answers, asked.explain(shown) if explain else asked.assess(shown), strict=True
        ):
            each.append(answer)
    return answers


def explain_alarms(
    detectors: Mapping[str, DetectorModels],
    jobs: pl.DataFrame,
    answers: Sequence[Sequence[Answer]],
    known: Known,
    stage: Stage,
) -> list[list[Answer]]:
    """The same answers with alarms explained, which costs many times as much as finding them."""
    explained = [list(each) for each in answers]
    for row, each in enumerate(explained):
        for place, answer in enumerate(each):
            if any(finding.level in ALARMS for finding in answer.parts.findings):
                asked = _Asked(answer.detector, detectors[answer.detector].models[stage], known, stage)
                [better] = asked.explain(as_known(jobs.slice(row, 1), stage))
                if better.version is not None:  # an alarm counts even if it cannot be explained
                    each[place] = better
    return explained


@dataclass(frozen=True, slots=True)
class _Asked:
    """One detector and the arguments of its calls."""

    name: str
    model: Model
    known: Known
    stage: Stage

    def assess(self, jobs: pl.DataFrame) -> list[Answer]:
        return self._answers(jobs, lambda part: self.model.fitted.assess(part, self.known, stage=self.stage))

    def explain(self, jobs: pl.DataFrame) -> list[Answer]:
        fitted = self.model.fitted
        return self._answers(
            jobs,
            lambda part: [
                fitted.explain(part.slice(row, 1), self.known, stage=self.stage) for row in range(part.height)
            ],
        )

    def _answers(self, jobs: pl.DataFrame, ask: Callable[[pl.DataFrame], list[Parts]]) -> list[Answer]:
        """A frame that the detector fails on is retried in halves, so that only the odd job is lost."""
        failures = 0

        def answers(part: pl.DataFrame) -> list[Answer]:
            nonlocal failures
            try:
                found = ask(part)
                if not isinstance(found, list) or len(found) != part.height:
                    count = len(found) if isinstance(found, list) else "no"
                    raise ValueError(f"{count} answers for {part.height} jobs")
                return [self._checked(parts) for parts in found]
            except Exception as error:  # a plug-in may fail in any way
                half = part.height // 2
                if not half or failures >= _MOST_FAILURES:
                    failures += 1
                    return [_unanswered(self.name, error_text(error))] * part.height
                return answers(part.head(half)) + answers(part.slice(half))

        return answers(jobs)

    def _checked(self, parts: Any) -> Answer:
        problem = _problem(self.name, parts)
        return _unanswered(self.name, problem) if problem else Answer(self.name, self.model.version, parts)


def _problem(name: str, parts: Any) -> str | None:
    """Why a verdict cannot hold these parts."""
    if not isinstance(parts, Parts):
        return f"its answer is {type(parts).__name__}, not Parts"
    if parts == _NOTHING:
        return None
    for finding in parts.findings:
        if (
            not isinstance(finding, Finding)
            or finding.detector != name
            or not isinstance(finding.level, Level)
        ):
            return "one of its findings is not a Finding, names another detector or has no level"
    try:
        json.dumps(parts, default=_fields, allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"its answer cannot be written as JSON: {str(error)[:200]}"
    return None


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass as JSON; asdict would first copy everything in it."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _unanswered(name: str, reason: str) -> Answer:
    return Answer(name, None, Parts(missing={name: reason}))


def error_text(error: Exception) -> str:
    return f"it failed: {type(error).__name__}: {str(error)[:300]}"
