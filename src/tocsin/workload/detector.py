"""The detector `workload`: classifies jobs by their script at submission and by their counters at the end."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.detector import Budget, Fitted, Known, Need, Parts
from tocsin.core.errors import ModelError
from tocsin.core.frames import key_text
from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM, Finding, Level, Screening, Workload
from tocsin.workload.execution.models import FILE as EXECUTION
from tocsin.workload.execution.models import FittedExecution, load_execution
from tocsin.workload.execution.training import execution_labels, train_execution
from tocsin.workload.screening import Screener, builtin, load_screener

__all__ = ["DETECTOR", "MISUSE", "FittedEnd", "FittedScreening", "WorkloadDetector"]

NAME = "workload"
MISUSE = {"cryptomining": "mines a cryptocurrency", "cyber": "cracks passwords, scans or floods networks"}
"""Operations that are always a finding; for others, the allow-list decides."""
_LONG = 8 * 3600
"""Requested seconds from which unreadable commands are a warning."""
_NUMBER = re.compile(r"\d+")
_NO_SCRIPT = "no script of the job is known, so its workload cannot be classified"
_PRUNED = "the job's script was pruned, so its workload cannot be classified"


@dataclass(frozen=True, slots=True)
class FittedScreening:
    """Classifies jobs by their scripts, at submission."""

    screener: Screener

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        _check(stage, Stage.SUBMIT)
        return [
            Parts(missing={NAME: found})
            if isinstance(found, str)
            else _parts(Workload(submission=found), large=large)
            for found, large in zip(_screened(self.screener, jobs, known), _large(jobs), strict=True)
        ]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        self.screener.save(folder)


@dataclass(frozen=True, slots=True)
class FittedEnd:
    """Classifies jobs by their counters, at their end, in addition to the result for their scripts."""

    execution: FittedExecution
    screener: Screener

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        _check(stage, Stage.END)
        answers = zip(
            _screened(self.screener, jobs, known),
            self.execution.screen(jobs),
            self.execution.missing(jobs),
            _large(jobs),
            strict=True,
        )
        return [_both(*answer) for answer in answers]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        return self.assess(job, known, stage=stage)[0]

    def save(self, folder: Path) -> None:
        self.execution.save(folder)

    def with_screener_of(self, submission: Fitted) -> "FittedEnd":
        """The same, with the screener of the model in use at submission."""
        return (
            replace(self, screener=submission.screener) if isinstance(submission, FittedScreening) else self
        )


@dataclass(frozen=True, slots=True)
class WorkloadDetector:
    """Scripts are classified by the shipped weights until a site trains its own; executions only after training."""

    name: str = NAME
    stages: Sequence[Stage] = (Stage.SUBMIT, Stage.END)
    learns: bool = True
    needs: Collection[Need] = (Need.SCRIPTS,)

    def fit(self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget) -> Fitted:
        """At submission, nothing is learned from jobs; at the end, the results for their scripts are the labels."""
        del budget  # neither searches
        if stage is Stage.SUBMIT:
            return FittedScreening(_shipped())
        _check(stage, Stage.END)
        keys = jobs.select(key_text()).to_series().to_list()
        screened = zip(keys, _screened(_shipped(), jobs, known), strict=True)
        probabilities = {key: each.operations for key, each in screened if not isinstance(each, str)}
        now = jobs.select(pl.coalesce("known_at", "end").max()).item()
        fitted = train_execution(jobs, execution_labels(jobs, probabilities), now=now or 0, seed=seed)
        return FittedEnd(fitted, _shipped())

    def load(self, folder: Path) -> Fitted:
        if (folder / EXECUTION).is_file():
            return FittedEnd(load_execution(folder), _shipped())
        return FittedScreening(load_screener(folder))


@cache
def _shipped() -> Screener:
    """Loaded once per process."""
    return builtin()


def _check(stage: Stage, own: Stage) -> None:
    if stage is not own:
        raise ModelError(f"this model is for stage {own}, not for {stage}")


def _screened(screener: Screener, jobs: pl.DataFrame, known: Known) -> list[Screening | str]:
    """Screen each job's script with its name and requested GPUs, or report why that is impossible.

    Jobs that agree in all three are screened once.
    """
    asked = list(zip(jobs["script"].to_list(), _names(jobs), _gpus(jobs), strict=True))
    texts = {digest: known.script(digest) for digest, _, _ in dict.fromkeys(asked) if digest is not None}
    kept = {key: text for key in dict.fromkeys(asked) if (text := texts.get(key[0] or "")) is not None}
    requests = [{"name": name, "req_gpus": gpus} for _, name, gpus in kept]
    found = dict(zip(kept, screener.screen_again(list(kept.values()), requests=requests), strict=True))
    return [found.get(key, _NO_SCRIPT if key[0] is None else _PRUNED) for key in asked]


def _names(jobs: pl.DataFrame) -> list[str | None]:
    """Job names without numbers, so that the jobs of an array or a sweep are screened once."""
    return [name and _NUMBER.sub("0", name) for name in _column(jobs, "name")]


def _gpus(jobs: pl.DataFrame) -> list[int | None]:
    """Whether GPUs are requested, as 1 or 0; None if unknown."""

    def asked(number: int | None, gres: str | None) -> int | None:
        if number is not None:
            return int(number > 0)
        return None if gres is None else int("gpu" in gres)

    return list(map(asked, _column(jobs, "req_gpus"), _column(jobs, "req_gres")))


def _column(jobs: pl.DataFrame, name: str) -> list[Any]:
    """Its values as a list: for one job, a polars expression would cost more than everything done with them."""
    return jobs.get_column(name).to_list() if name in jobs.columns else [None] * jobs.height


def _large(jobs: pl.DataFrame) -> list[bool]:
    """Whether GPUs or many hours are requested."""
    limits = _column(jobs, "time_limit")
    return [bool(gpus) or (limit or 0) >= _LONG for gpus, limit in zip(_gpus(jobs), limits, strict=True)]


def _parts(workload: Workload, *, large: bool) -> Parts:
    return Parts(findings=_findings(workload, large=large), workload=workload)


def _both(
    submission: Screening | str, execution: Screening | None, no_execution: str | None, large: bool
) -> Parts:
    by_script = None if isinstance(submission, str) else submission
    missing = {f"{NAME}.execution": no_execution} if no_execution else {}
    if isinstance(submission, str):
        missing[f"{NAME}.submission"] = submission
    if by_script is None and execution is None:
        return Parts(missing=missing)
    workload = Workload(submission=by_script, execution=execution)
    return Parts(findings=_findings(workload, large=large), workload=workload, missing=missing)


def _findings(workload: Workload, *, large: bool) -> list[Finding]:
    """Findings of misuse; the result for the execution overrides the one for the script."""
    did = workload.execution.operations if workload.execution else {}
    probabilities = workload.operations
    evidence = workload.submission.evidence if workload.submission else []
    open_signs = workload.submission.open if workload.submission else []
    unread = workload.submission is not None and workload.submission.runs_unread
    left_open = [
        Finding(
            detector=NAME,
            kind="open",
            level=Level.WARNING if unread and large else Level.OK,
            text=f"not proof of misuse, but worth a look: {sign}",
        )
        for sign in open_signs[:1]
    ]
    return left_open + [
        Finding(
            detector=NAME,
            kind=name,
            operation=name,
            level=Level.WARNING,
            text=f"{'by what it did, the job' if name in did else 'the script'} {what} with a probability of {probabilities[name]:.0%}",
            score=probabilities[name],
            threshold=SEEN_FROM,
            evidence=[f"line {entry.line}" for entry in evidence if entry.operation == name],
        )
        for name, what in MISUSE.items()
        if probabilities.get(name, 0.0) >= SEEN_FROM
    ]


DETECTOR = WorkloadDetector()
