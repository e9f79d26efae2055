"""A trained failure model that answers: probabilities for many jobs at once, and one job with its reasons."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Known, Parts
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import Advice, Anomaly, Contribution, Failure, Finding, Level, Nodes, Resources
from tocsin.failure.advice import advise, moved
from tocsin.failure.bad_nodes import bad_nodes, nodes_of_jobs, partition_nodes
from tocsin.failure.causes import READ, causes
from tocsin.failure.changes import Evidence
from tocsin.failure.columns import Columns
from tocsin.failure.contributions import top_contributions
from tocsin.failure.explainers import Explainers
from tocsin.failure.history_features import history_features
from tocsin.failure.holdout import Calibrated, Holdout, calibrated
from tocsin.failure.missing import BEFORE, missing_parts
from tocsin.failure.model_training import SHARE
from tocsin.failure.plan import Plan
from tocsin.failure.resources import READ as RUNS
from tocsin.failure.shortages import READ as SHORT_OF
from tocsin.failure.shortages import Shortage
from tocsin.models.cards import Card, Window
from tocsin.models.engines import Booster, Matrix
from tocsin.models.thresholds import ThresholdRule
from tocsin.scripts.submission import read_submissions

__all__ = ["FILE", "HOLDOUT", "NAME", "VERSION", "FittedFailure"]

NAME = "failure"
VERSION = 4
"""Of the form in which a model is saved."""
FILE = "failure.json"
HOLDOUT = "holdout.parquet"
_SPLIT = f"first {SHARE:.0%} of the training by time, the rest predicted and calibrated on"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFailure:
    """A model for one stage, with all that its card tells."""

    columns: Columns
    target: Target
    engine: str
    suffix: str
    """Of the engine's file."""
    model: Booster
    plan: Plan
    holdout: Holdout
    calibrated: Calibrated
    causes: Mapping[str, float]
    window: Window
    rows: int
    clusters: tuple[str, ...]
    """Whose jobs it learned from."""
    explainers: Explainers | None = None
    """None in a walk through time, where nobody asks for explanation."""

    def probabilities(self, jobs: pl.DataFrame, history: pl.DataFrame) -> NDArray[np.float64]:
        """One a row, calibrated; `history` is what was `history_features` them at the model's stage."""
        return self._risks(self.columns.matrix(jobs, history))

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        self._check(stage)
        if not jobs.height:
            return []
        history = history_features(jobs, known, stage=stage, names=self._reads())
        X = self.columns.matrix(jobs, history)
        p = self._risks(X)
        missing = missing_parts(jobs, history, stage, self.clusters)
        needs = (
            self.explainers.resources.resources(X, jobs, history) if self.explainers else [None] * jobs.height
        )
        nodes = nodes_of_jobs(jobs, known, stage=stage)
        rings = p >= self.calibrated.threshold.value
        told: dict[int, dict[str, Any]] = {}
        if self.causes and rings.any():
            ringing = np.flatnonzero(rings).tolist()
            kinds = pl.DataFrame([history.get_column(name) for name in READ])
            if (
                len(ringing) < jobs.height
            ):  # a job alone is not chosen from others, which would cost more than all else
                kinds = kinds[ringing]
            told = dict(zip(ringing, kinds.to_dicts(), strict=True))
        parts = [
            Parts(missing=amiss)
            if amiss is not None and "failure" in amiss
            else self._parts(risk, told.get(row), amiss, resources=needs[row], nodes=nodes[row])
            for row, (risk, amiss) in enumerate(zip(p.tolist(), missing, strict=True))
        ]
        return self._with_shortages(parts, jobs, stage)

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        self._check(stage)
        history = history_features(job, known, stage=stage)
        missing = missing_parts(job, history, stage, self.clusters)[0]
        if job["submit"][0] <= self.window.last:
            missing = {**(missing or {}), "failure.hindsight": self._hindsight()}
        if missing is not None and "failure" in missing:
            return Parts(missing=missing)
        X = self.columns.matrix(job, history)
        row = history.row(0, named=True)
        parts = self._parts(
            float(self._risks(X)[0]),
            row,
            missing,
            contributions=top_contributions(
                self.columns.names, X[0].tolist(), self.model.contributions(X)[0], row, self._at
            ),
            nodes=nodes_of_jobs(job, known, stage=stage)[0],
        )
        parts = self._explained(parts, job, X, history, known, stage) if self.explainers else parts
        return self._with_shortages([parts], job, stage)[0]

    def with_rule(self, rule: ThresholdRule, *, seed: int = 0) -> "FittedFailure":
        """The same model that rings by another rule."""
        return replace(self, calibrated=calibrated(self.holdout, rule=rule, seed=seed))

    def save(self, folder: Path) -> None:
        """The booster in its native text, its holdout as a table with curves, and all else as JSON."""
        document = {
            "version": VERSION,
            "columns": self.columns.to_json(),
            "target": str(self.target),
            "engine": self.engine,
            "plan": self.plan.to_json(),
            "calibrated": self.calibrated.to_json(),
            "causes": dict(self.causes),
            "window": asdict(self.window),
            "rows": self.rows,
            "clusters": list(self.clusters),
            "explained": self.explainers is not None,
        }
        text = json.dumps(document, indent=1, sort_keys=True, allow_nan=False)
        (folder / FILE).write_text(text + "\n", "utf-8")
        self.model.save(folder / f"model{self.suffix}")
        self.holdout.frame().write_parquet(folder / HOLDOUT)
        self._write_curves(folder)
        if self.explainers:
            self.explainers.save(folder)

    def _write_curves(self, folder: Path) -> None:
        from tocsin.models.curves import curves  # loaded lazily: predictions never need it

        p = self.calibrated.calibrator.apply(self.holdout.scores)
        found = curves(self.holdout.failed, p, threshold=self.calibrated.threshold.value)
        (folder / "curves.json").write_text(
            json.dumps(found, sort_keys=True, allow_nan=False) + "\n", "utf-8"
        )

    def card(self, *, created: int) -> Card:
        """For the registry. Its figures are of the holdout: the same training on the first jobs, asked about the rest."""
        return Card(
            detector=NAME,
            stage=self.columns.stage,
            target=str(self.target),
            clusters=list(self.clusters),
            engine=self.engine,
            created=created,
            window=self.window,
            rows=self.rows,
            features=self.columns.names,
            parameters={**self.plan.parameters, "rounds": self.plan.rounds},
            search={
                **self.plan.search,
                "dropped": dict(self.plan.dropped),
                "importances": dict(self.plan.importances),
            },
            calibration={**self.calibrated.calibrator.to_json(), "brier": dict(self.calibrated.brier)},
            thresholds=[self.calibrated.threshold.to_json()],
            figures=[
                f.figure(stage=self.columns.stage, split=_SPLIT, data="training")
                for f in self.calibrated.figures
            ],
        )

    def _reads(self) -> list[str]:
        """Of the past, what a verdict without explanation is made of."""
        needs = RUNS if self.explainers else ()
        return list(dict.fromkeys((*self.columns.reads, BEFORE, *(READ if self.causes else ()), *needs)))

    def _hindsight(self) -> str:
        last = format_instant(self.window.last)
        return f"the model learned from jobs up to {last}, so it knows more than was known when this one was submitted"

    def _check(self, stage: Stage) -> None:
        if stage is not self.columns.stage:
            raise ModelError(
                f"this model answers at {self.columns.stage}, not at {stage}; train one for {stage}"
            )

    def _risks(self, X: Matrix) -> NDArray[np.float64]:
        return self.calibrated.calibrator.apply(self.model.predict(X))

    def _parts(
        self,
        p: float,
        history: Mapping[str, Any] | None,
        missing: dict[str, str] | None,
        *,
        contributions: Sequence[Contribution] = (),
        resources: Resources | None = None,
        nodes: Nodes | None = None,
    ) -> Parts:
        threshold = self.calibrated.threshold.value
        rings = p >= threshold
        by = causes(p, history, self.causes) if self.causes and history is not None else {}
        failure = Failure(
            probability=p,
            threshold=threshold,
            will_fail=rings,
            target=self.target,
            causes=by,
            contributions=list(contributions),
        )
        findings = [self._finding(p, by, contributions)] if rings else []
        return Parts(
            findings=findings, failure=failure, resources=resources, nodes=nodes, missing=missing or {}
        )

    def _explained(
        self, parts: Parts, job: pl.DataFrame, X: Matrix, history: pl.DataFrame, past: Known, stage: Stage
    ) -> Parts:
        """With all that the training's jobs tell of this one: what it needs, what is odd, what resembles it, what to change."""
        assert self.explainers is not None, "asked for only then"
        row = job.row(0, named=True)
        profile = self.explainers.profiles.assign(job)[0] if self.explainers.profiles else None
        resources = self.explainers.resources.resources(X, job, history)[0]
        advice: list[Advice] = []
        if stage is Stage.SUBMIT:
            nodes = partition_nodes(past.machine, row["partition"])
            evidence = Evidence(
                history=history.row(0, named=True),
                resources=resources,
                shortages=self.explainers.shortages.of(row),
                bad_nodes=bad_nodes(nodes, row["submit"], past),
                machine=past.machine,
                submission=read_submissions(past, [(row["script"], row["submit_line"])])[0],
            )
            advice = advise(job, evidence, lambda changed: self._changed(X, changed, history, past, stage))
        assert parts.failure is not None, "a job that has reached its stage has a probability"
        return replace(
            parts,
            failure=replace(parts.failure, similar=self.explainers.similar.find(X, row), profile=profile),
            resources=resources,
            advice=advice,
            anomalies=[
                Anomaly(detector=NAME, kind="unusual_request", part=odd.part, score=odd.score, text=odd.text)
                for odd in self.explainers.odd.say(row)
            ],
        )

    def _with_shortages(self, parts: list[Parts], jobs: pl.DataFrame, stage: Stage) -> list[Parts]:
        """What is certain by the training's jobs rings, however unsure the model is of a request that it never saw."""
        if self.explainers is None or stage is not Stage.SUBMIT:
            return parts
        # Column by column, as in the ledger: for one job a select costs more than all that is read by it.
        values = zip(*(jobs.get_column(name).to_list() for name in SHORT_OF), strict=True)
        told = [self.explainers.shortages.of(dict(zip(SHORT_OF, row, strict=True))) for row in values]
        return [
            _without_need(replace(part, findings=[*part.findings, *_certain(short)]), short)
            if short
            else part
            for part, short in zip(parts, told, strict=True)
        ]

    def _changed(
        self, X: Matrix, changed: pl.DataFrame, history: pl.DataFrame, past: Known, stage: Stage
    ) -> float:
        """The risk of the job with another request, as it would be told if that were submitted.

        Where a request that nobody made yet looks like a riskier kind of job, only that counts in which the model is monotone.
        """
        anew = history_features(changed, past, stage=stage, names=self.columns.reads)
        kept = moved(X, self.columns.matrix(changed, history), self.columns.names)
        now, asked_anew, alike = self._risks(
            np.vstack([X, self.columns.matrix(changed, anew), kept])
        ).tolist()
        return float(asked_anew if asked_anew <= now else alike)

    def _finding(self, p: float, by: Mapping[str, float], because: Sequence[Contribution]) -> Finding:
        cause = next(iter(by), Outcome.FAILED)
        likely = "" if cause == Outcome.FAILED else f", most likely {cause.replace('_', ' ')}"
        word = "fail" if self.target is Target.FAILED else "be unsuccessful"
        return Finding(
            detector=NAME,
            kind="will_fail",
            level=Level.WARNING,
            text=f"the job will {word} with a probability of {p:.0%}{likely}",
            score=p,
            threshold=self.calibrated.threshold.value,
            evidence=[reason.text for reason in because if reason.effect > 0],
        )

    def _at(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The calibrated probabilities at these log-odds."""
        return self.calibrated.calibrator.apply(1 / (1 + np.exp(-np.clip(odds, -40.0, 40.0))))


def _without_need(parts: Parts, shortages: Mapping[str, Shortage]) -> Parts:
    """What memory a job needs is not told by jobs that got by with as little: there are none."""
    needs = parts.resources
    if "req_memory" not in shortages or needs is None or needs.memory_bytes is None:
        return parts
    return replace(
        parts,
        resources=replace(needs, memory_bytes=None),
        missing={**parts.missing, "resources.memory_bytes": "jobs like it ran out of what it asks for"},
    )


def _certain(shortages: Mapping[str, Shortage]) -> list[Finding]:
    return [
        Finding(
            detector=NAME,
            kind=f"short_of_{'memory' if field == 'req_memory' else 'time'}",
            level=Level.WARNING,
            text=short.text,
        )
        for field, short in shortages.items()
        if short.certain
    ]
