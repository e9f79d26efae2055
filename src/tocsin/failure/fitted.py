"""A trained failure model: probabilities for many jobs at once, and explanations for single jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Known, Parts
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import Advice, Anomaly, Contribution, Failure, Nodes, Resources
from tocsin.failure.advice import advise, moved
from tocsin.failure.bad_nodes import bad_nodes, nodes_of_jobs, partition_nodes
from tocsin.failure.causes import READ as CAUSES_READ
from tocsin.failure.causes import causes
from tocsin.failure.changes import Evidence
from tocsin.failure.contributions import top_contributions
from tocsin.failure.experience import Rows, blended, named_for
from tocsin.failure.explainers import Explainers
from tocsin.failure.findings import NAME, failure_finding, with_shortages
from tocsin.failure.history_features import history_numbers
from tocsin.failure.holdout import calibrated, rehearsed
from tocsin.failure.labels import default_target
from tocsin.failure.missing import CLUSTER_JOBS, missing_parts
from tocsin.failure.model_files import FailureModel
from tocsin.failure.recent_scores import RecentScores
from tocsin.failure.shortages import READ as SHORTAGES_READ
from tocsin.history.numbers import Numbers
from tocsin.models.engines import Matrix
from tocsin.models.thresholds import ThresholdRule
from tocsin.scripts.submission import read_submissions

__all__ = ["FittedFailure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFailure(FailureModel):
    """A failure model for one stage, as a detector."""

    def with_rule(self, rule: ThresholdRule) -> "FittedFailure":
        """The same model with its threshold chosen by another rule."""
        return replace(
            self,
            calibrated=calibrated(self.holdout, rule=rule, recent=self.recent),
            rehearsal=rehearsed(self.holdout, rule=rule),
        )

    def weighed_by(self, recent: RecentScores | None) -> "FittedFailure":
        """The same trees, weighed against other clusters' experience by recent scores as well (None: by its training
        alone)."""
        rule = self.calibrated.threshold.rule
        if self.experience is None or rule is None or recent is self.recent:
            return self
        return replace(self, recent=recent, calibrated=calibrated(self.holdout, rule=rule, recent=recent))

    def both_scores(
        self, jobs: pl.DataFrame, history: pl.DataFrame
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """The scores of jobs by its own trees and by other clusters' experience; None if it has no such experience."""
        rows = self._rows(jobs, history)
        if self.experience is None or rows.carried is None:
            return None
        return self.booster.predict(rows.own), self.experience.booster.predict(rows.carried)

    def for_target(self, target: Target) -> "FittedFailure":
        """The shipped model for this target; its trees read the shares of the target's outcomes."""
        if target is self.target:
            return replace(self, settled=True)
        names = named_for(self.columns.names, target)
        return replace(self, target=target, columns=self.columns.only(names), settled=True)

    def probabilities(self, jobs: pl.DataFrame, history: pl.DataFrame) -> NDArray[np.float64]:
        """One per row, calibrated; `history` holds the jobs' `history_features` at the model's stage."""
        if not self.settled:
            return self.for_target(default_target(jobs)).probabilities(jobs, history)
        return self._risks(self._rows(jobs, history))

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        self._check(stage)
        if not jobs.height:
            return []
        if not self.settled:
            return self.for_target(default_target(jobs)).assess(jobs, known, stage=stage)
        history = history_numbers(jobs, known, stage=stage, names=self._reads)
        rows = self._rows(jobs, history)
        p = self._risks(rows)
        missing = missing_parts(jobs, history, stage, self._taught_by)
        basis = self._basis(history)
        resources = self.resources.resources(rows.own, jobs, history)
        nodes = nodes_of_jobs(jobs, known, stage=stage)
        alarmed: dict[int, dict[str, Any]] = {}
        if self.causes and (above := np.flatnonzero(p >= self.calibrated.threshold.value).tolist()):
            alarmed = dict(zip(above, history.rows(above, CAUSES_READ), strict=True))
        parts = [
            Parts(missing=reasons)
            if reasons is not None and NAME in reasons
            else self._parts(
                risk, alarmed.get(row), reasons, resources=resources[row], nodes=nodes[row], basis=basis[row]
            )
            for row, (risk, reasons) in enumerate(zip(p.tolist(), missing, strict=True))
        ]
        return self._with_shortages(parts, jobs, stage)

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        self._check(stage)
        if not self.settled:
            return self.for_target(default_target(job)).explain(job, known, stage=stage)
        history = history_numbers(job, known, stage=stage)
        missing = missing_parts(job, history, stage, self._taught_by)[0]
        if not self.shipped and job["submit"][0] <= self.window.last:
            missing = {**(missing or {}), "failure.hindsight": self._hindsight()}
        if missing is not None and NAME in missing:
            return Parts(missing=missing)
        rows = self._rows(job, history)
        past = history.rows()[0]
        parts = self._parts(
            float(self._risks(rows)[0]),
            past,
            missing,
            contributions=top_contributions(*self._effects(rows), past, self._at),
            resources=self.resources.resources(rows.own, job, history)[0],
            nodes=nodes_of_jobs(job, known, stage=stage)[0],
            basis=self._basis(history)[0],
        )
        if self.explainers:
            parts = self._explained(parts, self.explainers, job, rows.own)
        if stage is Stage.SUBMIT:
            parts = replace(parts, advice=self._advice(parts, job, rows, history, past, known))
        return self._with_shortages([parts], job, stage)[0]

    def _hindsight(self) -> str:
        last = format_instant(self.window.last)
        return f"the model was trained on jobs up to {last}, so it knows more than was known when this one was submitted"

    def _check(self, stage: Stage) -> None:
        if stage is not self.columns.stage:
            raise ModelError(
                f"this model is for {self.columns.stage}, not for {stage}; train one for {stage}"
            )

    @property
    def _taught_by(self) -> tuple[str, ...] | None:
        """None: it is meant for clusters that it has never seen."""
        return None if self.shipped else self.clusters

    def _basis(self, history: Numbers) -> list[str | None]:
        """For each job, what its probability is based on, if not on this cluster's own past alone."""
        if not self.shipped:
            return [None] * len(history.values)
        return [
            f"from other clusters' experience; {jobs:,.0f} job{'' if jobs == 1 else 's'} of this cluster seen so far"
            for jobs in np.nan_to_num(history.column(CLUSTER_JOBS)).tolist()
        ]

    def _rows(self, jobs: pl.DataFrame, history: pl.DataFrame | Numbers) -> Rows:
        return self._layout.rows(jobs, history) if self._layout else Rows(self.columns.matrix(jobs, history))

    def _risks(self, rows: Rows) -> NDArray[np.float64]:
        scores = self.booster.predict(rows.own)
        if self.experience is not None and rows.carried is not None:
            others = self.experience.booster.predict(rows.carried)
            scores = blended(scores, others, self._own_weight)
        return self.calibrated.calibrator.apply(scores)

    @property
    def _own_weight(self) -> float:
        weight = self.calibrated.own_weight
        return 1.0 if weight is None else weight

    def _effects(self, rows: Rows) -> tuple[Sequence[str], Sequence[float], NDArray[np.float64]]:
        """Names, values and effects on the log-odds of the features of one job, followed by the base."""
        names, values = list(self.columns.names), rows.own[0].tolist()
        effects = self.booster.contributions(rows.own)[0]
        if self.experience is None or rows.carried is None:
            return names, values, effects
        weight = self._own_weight
        others = self.experience.booster.contributions(rows.carried)[0] * (1 - weight)
        effects = effects * weight
        return (
            [*names, *self.experience.columns.names],
            [*values, *rows.carried[0].tolist()],
            np.concatenate([effects[:-1], others[:-1], effects[-1:] + others[-1:]]),
        )

    def _at(self, odds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The calibrated probabilities for these log-odds."""
        return self.calibrated.calibrator.apply(1 / (1 + np.exp(-np.clip(odds, -40.0, 40.0))))

    def _parts(
        self,
        p: float,
        history: Mapping[str, Any] | None,
        missing: dict[str, str] | None,
        *,
        contributions: Sequence[Contribution] = (),
        resources: Resources,
        nodes: Nodes | None,
        basis: str | None,
    ) -> Parts:
        threshold = self.calibrated.threshold.value
        failure = Failure(
            probability=p,
            threshold=threshold,
            will_fail=p >= threshold,
            target=self.target,
            causes=causes(p, history, self.causes) if self.causes and history is not None else {},
            contributions=list(contributions),
            basis=basis,
        )
        return Parts(
            findings=[failure_finding(failure)] if failure.will_fail else [],
            failure=failure,
            resources=resources,
            nodes=nodes,
            missing=missing or {},
        )

    def _explained(self, parts: Parts, explainers: Explainers, job: pl.DataFrame, X: Matrix) -> Parts:
        """With similar jobs, the job's profile, and what is unusual in its request."""
        assert parts.failure is not None, "a job that has reached its stage has a probability"
        row = job.row(0, named=True)
        return replace(
            parts,
            failure=replace(
                parts.failure,
                similar=explainers.similar.find(X, row),
                profile=explainers.profiles.assign(job)[0] if explainers.profiles else None,
            ),
            anomalies=[
                Anomaly(
                    detector=NAME, kind="unusual_request", part=each.part, score=each.score, text=each.text
                )
                for each in explainers.unusual.find(row)
            ],
        )

    def _advice(
        self,
        parts: Parts,
        job: pl.DataFrame,
        rows: Rows,
        history: Numbers,
        past: Mapping[str, Any],
        known: Known,
    ) -> list[Advice]:
        """`past` is the history by name."""
        row = job.row(0, named=True)
        evidence = Evidence(
            history=past,
            resources=parts.resources,
            shortages=self.shortages.of(row),
            bad_nodes=bad_nodes(partition_nodes(known.machine, row["partition"]), row["submit"], known),
            machine=known.machine,
            submission=read_submissions(known, [(row["script"], row["submit_line"])])[0],
        )
        assert parts.failure is not None, "a job that has reached its stage has a probability"
        now = parts.failure.probability

        def risk(asked: pl.DataFrame) -> float:
            return now if asked is job else self._risk_of_change(now, rows, asked, history, known)

        return advise(job, evidence, risk)

    def _risk_of_change(
        self, now: float, rows: Rows, changed: pl.DataFrame, history: Numbers, known: Known
    ) -> float:
        """The risk of the job if it were submitted with another request.

        If a new request looks like a riskier kind of job, only the features count in which the model is
        monotone.
        """
        anew = self._rows(
            changed, history_numbers(changed, known, stage=self.columns.stage, names=self._reads)
        )
        as_new = float(self._risks(anew)[0])
        if as_new <= now:
            return as_new
        alike = self._rows(changed, history)
        monotone = Rows(moved(rows.own, alike.own, self.columns.names))
        if self.experience is not None and rows.carried is not None and alike.carried is not None:
            names = self.experience.columns.names
            monotone = replace(monotone, carried=moved(rows.carried, alike.carried, names))
        return float(self._risks(monotone)[0])

    def _with_shortages(self, parts: list[Parts], jobs: pl.DataFrame, stage: Stage) -> list[Parts]:
        if stage is not Stage.SUBMIT:
            return parts
        # Column by column: for a single job, a select costs more than everything that it reads.
        values = zip(*(jobs.get_column(name).to_list() for name in SHORTAGES_READ), strict=True)
        found = (self.shortages.of(dict(zip(SHORTAGES_READ, row, strict=True))) for row in values)
        return [with_shortages(part, short) for part, short in zip(parts, found, strict=True)]
