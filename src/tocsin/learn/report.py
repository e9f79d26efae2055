"""What a walk through time was worth: figures over all its predictions and by month, and what ringing would have saved."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.failure.labels import failed
from tocsin.failure.node_hours import hours_unit, node_hours
from tocsin.learn.walk import StepResult, counted
from tocsin.models.metrics import Metric, evaluate, measure

__all__ = ["Coverage", "Month", "Report", "report"]

_BY_ALARM = ("accuracy", "precision", "recall", "f1")
"""Figures of the alarms: each step rings by the threshold that it chose for itself."""
_MOST_MONTHS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    month: str
    jobs: int
    failing: float
    alarms: int
    precision: float | None
    recall: float | None
    auc: float | None
    average_precision: float | None
    covered: float | None
    """Completed jobs within their bound on run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the bound on run time held: 0.95 is what it promises for jobs that complete."""

    completed: float | None
    all_ended: float | None
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    target: Target
    predicted: int
    """Jobs that a probability was given for, each once."""
    judged: int
    """Those of them whose outcome counts for the target."""
    trainings: int
    searches: int
    without_model: int
    figures: list[Metric]
    months: list[Month]
    alarms: int
    unmet: int
    """Steps in which no threshold met the rule."""
    hours: str
    """What is saved, delayed and wasted: node-hours, or CPU-hours where the jobs tell no nodes."""
    saved: float
    delayed: float
    wasted: float
    runtime: Coverage

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def report(walked: Sequence[StepResult], target: Target, *, seed: int = 0) -> Report:
    jobs = pl.concat([each.jobs for each in walked])
    p = np.concatenate([each.probability for each in walked])
    rings = np.concatenate([each.probability >= each.threshold for each in walked])
    bound = np.concatenate([each.bound for each in walked])
    counts = counted(jobs, target)
    if not counts.any():
        raise ModelError(f"no predicted job has an outcome for the target {target}; read a longer log")
    judged, y = jobs.filter(counts), failed(jobs.filter(counts))
    p, rings, bound = p[counts], rings[counts], bound[counts]
    submit, hours = judged["submit"].to_numpy(), node_hours(judged)
    of_alarms = {m.name: m for m in evaluate(y, rings.astype(float), submit, threshold=0.5, seed=seed)}
    figures = [
        of_alarms[m.name] if m.name in _BY_ALARM else m
        for m in evaluate(y, p, submit, threshold=0.5, seed=seed)
    ]
    held = _held(judged, bound)
    return Report(
        target=target,
        predicted=jobs.height,
        judged=judged.height,
        trainings=sum(each.refused is None for each in walked),
        searches=sum(each.searched for each in walked),
        without_model=sum(each.refused is not None for each in walked),
        figures=figures,
        months=_months(judged, y, p, rings, held),
        alarms=int(rings.sum()),
        unmet=sum(not each.met for each in walked if each.refused is None),
        hours=hours_unit(judged),
        saved=float(hours[rings & (y > 0)].sum()),
        delayed=float(hours[rings & (y == 0)].sum()),
        wasted=float(hours[~rings & (y > 0)].sum()),
        runtime=Coverage(
            completed=_mean(held[y == 0]), all_ended=_mean(held), jobs=int(np.isfinite(held[y == 0]).sum())
        ),
    )


def _held(jobs: pl.DataFrame, bound: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where a job kept to its bound, 0 where not, NaN where that is not known."""
    elapsed = jobs["elapsed"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    # a bound is told in whole seconds, rounded up
    kept = (elapsed <= np.ceil(bound)).astype(np.float64)
    return np.where(np.isnan(elapsed) | np.isnan(bound), np.nan, kept)


def _months(
    jobs: pl.DataFrame,
    y: NDArray[np.float64],
    p: NDArray[np.float64],
    rings: NDArray[np.bool_],
    held: NDArray[np.float64],
) -> list[Month]:
    names = jobs.select(pl.from_epoch("submit", time_unit="s").dt.strftime("%Y-%m")).to_series().to_numpy()
    found = []
    for name in np.unique(names)[:_MOST_MONTHS]:
        rows = names == name
        bad, rung = y[rows], rings[rows]
        both = 0 < bad.mean() < 1
        hits = float(bad[rung].sum())
        found.append(
            Month(
                month=str(name),
                jobs=int(rows.sum()),
                failing=float(bad.mean()),
                alarms=int(rung.sum()),
                precision=hits / rung.sum() if rung.any() else None,
                recall=hits / bad.sum() if bad.any() else None,
                auc=measure("auc", bad, p[rows]) if both else None,
                average_precision=measure("average_precision", bad, p[rows]) if both else None,
                covered=_mean(held[rows & (y == 0)]),
            )
        )
    return found


def _mean(values: NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
