"""A training: a plan, a rehearsal on later jobs that calibrates it, then the model of all rows."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Outcome
from tocsin.failure.plan import Plan, fitted, make_plan
from tocsin.models.calibration import IDENTITY, Calibrator, calibrate, calibrator_from_json
from tocsin.models.engines import Booster, Engine, Matrix
from tocsin.models.metrics import Metric, evaluate
from tocsin.models.splits import first_last
from tocsin.models.thresholds import Rule, Threshold, choose, table, threshold_from_json

__all__ = [
    "SHARE",
    "Calibrated",
    "Rehearsal",
    "calibrated",
    "failed",
    "hours_of",
    "node_hours",
    "rehearse",
    "train",
]

SHARE = 0.8
LEVEL = 0.01


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Scores that a model gave to later jobs than those it was trained on, and what became of them."""

    scores: NDArray[np.float64]
    failed: NDArray[np.float64]
    submit: NDArray[np.int64]
    hours: NDArray[np.float64]
    """Node-hours of each job."""

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame(
            {"score": self.scores, "failed": self.failed, "submit": self.submit, "hours": self.hours}
        )

    @classmethod
    def read(cls, path: Path) -> "Rehearsal":
        """From the table that `frame` made."""
        try:
            table = pl.read_parquet(path)
            scores, bad, submit, hours = (
                table[name].to_numpy() for name in ("score", "failed", "submit", "hours")
            )
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ModelError(f"{path} is no rehearsal of a model: {str(error)[:100]}; train again") from None
        return cls(scores, bad, submit, hours)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What a rehearsal says of a model: how its scores become probabilities, and where it rings."""

    calibrator: Calibrator
    brier: Mapping[str, float]
    threshold: Threshold
    table: list[Threshold]
    figures: list[Metric]

    def to_json(self) -> dict[str, Any]:
        return {
            "calibrator": self.calibrator.to_json(),
            "brier": dict(self.brier),
            "threshold": self.threshold.to_json(),
            "table": [row.to_json() for row in self.table],
            "figures": [asdict(figure) for figure in self.figures],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Calibrated":
        return cls(
            calibrator=calibrator_from_json(document["calibrator"]),
            brier=dict(document["brier"]),
            threshold=threshold_from_json(document["threshold"]),
            table=[threshold_from_json(row) for row in document["table"]],
            figures=[Metric(**figure) for figure in document["figures"]],
        )


def train(
    engine: Engine,
    X: Matrix,
    names: tuple[str, ...],
    jobs: pl.DataFrame,
    *,
    plan: Plan | None,
    rehearsal: Rehearsal | None,
    seed: int,
    budget: Budget,
    threads: int,
) -> tuple[Plan, Rehearsal, Booster, Matrix]:
    """`X` and `jobs` row by row, in the order of time; a plan or a rehearsal that is given is not made again.

    The rehearsal is of a model by the same plan that saw only the first 80 %, asked about the rest; the model that is
    kept saw all, for the last days tell most about the next ones. Returned with them are the plan's columns of X.
    """
    y = failed(jobs)
    submit, known = (jobs[name].to_numpy() for name in ("submit", "known_at"))
    if plan is None:
        plan = make_plan(engine, X, names, y, submit, known, seed=seed, budget=budget, threads=threads)
    if plan.names != names:
        places = {name: place for place, name in enumerate(names)}
        X = np.ascontiguousarray(X[:, [places[name] for name in plan.names]])
    if rehearsal is None:
        rehearsal = rehearse(plan, engine, X, jobs, seed=seed, threads=threads)
    return plan, rehearsal, fitted(plan, engine, X, y, seed=seed, threads=threads), X


def rehearse(
    plan: Plan, engine: Engine, X: Matrix, jobs: pl.DataFrame, *, seed: int, threads: int
) -> Rehearsal:
    y = failed(jobs)
    submit = jobs["submit"].to_numpy()
    step = first_last(submit, jobs["known_at"].to_numpy(), share=SHARE)
    if np.unique(y[step.train]).size < 2:
        raise ModelError(
            "all jobs of the first part of the training ended alike; take a longer window or another target"
        )
    early = fitted(plan, engine, X[step.train], y[step.train], seed=seed, threads=threads)
    return Rehearsal(
        early.predict(X[step.test]), y[step.test], submit[step.test], node_hours(jobs)[step.test]
    )


def calibrated(rehearsal: Rehearsal, *, rule: Rule, seed: int) -> Calibrated:
    """The curve, and the threshold by the rule."""
    y, submit, hours = rehearsal.failed, rehearsal.submit, rehearsal.hours
    chosen = calibrate(rehearsal.scores, y)
    # A level curve would make all jobs alike; where later jobs gave no proof, the order is still the best guess.
    level = np.ptp(chosen.calibrator.apply(np.array([0.01, 0.99]))) < LEVEL
    calibrator = IDENTITY if level else chosen.calibrator
    p = calibrator.apply(rehearsal.scores)
    threshold = _eased(choose(rule, y, p, submit, hours), p)
    return Calibrated(
        calibrator=calibrator,
        brier=chosen.brier,
        threshold=threshold,
        table=[
            replace(row, value=threshold.value) if row.alarms == threshold.alarms else row
            for row in table(y, p, submit, hours)
        ],
        figures=evaluate(y, p, submit, threshold=threshold.value, seed=seed),
    )


def _eased(threshold: Threshold, p: NDArray[np.float64]) -> Threshold:
    """Half way down to the next probability, so that the last digits of one job do not decide; the same jobs ring.

    But not below the precision that the rule asks for: a calibrated probability is the precision of the jobs that have it.
    """
    below, rule = p[p < threshold.value], threshold.rule
    if not threshold.met or not threshold.alarms or not below.size:
        return threshold
    asked = rule.value if rule and rule.kind == "precision_at_least" else 0.0
    middle = (threshold.value + float(below.max())) / 2
    return replace(threshold, value=max(middle, min(asked, threshold.value)))


def failed(jobs: pl.DataFrame) -> NDArray[np.float64]:
    return jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64)


def hours_of(jobs: pl.DataFrame) -> str:
    """What `node_hours` counts for these jobs: archives tell processors and no nodes."""
    told = jobs["alloc_nodes"].count() or jobs["req_nodes"].count()
    return "node-hours" if told else "CPU-hours"


def node_hours(jobs: pl.DataFrame) -> NDArray[np.float64]:
    """What each job took of the machine; CPU-hours where no job tells its nodes."""
    fields = ("nodes", "cpus")[hours_of(jobs) != "node-hours"]
    width = pl.coalesce(f"alloc_{fields}", f"req_{fields}", pl.lit(1))
    hours = jobs.select((pl.col("elapsed").fill_null(0).clip(0) * width / 3600).cast(pl.Float64)).to_series()
    return hours.to_numpy()
