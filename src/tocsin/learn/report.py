"""The report of a back-test: figures over all predictions, by month, and by source of alarms."""

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
from tocsin.learn.alarms import MODEL
from tocsin.learn.held_back import counted
from tocsin.learn.promises import Promise, months_kept
from tocsin.learn.walk import StepResult
from tocsin.models.metrics import Metric, evaluate, measure
from tocsin.models.thresholds import ThresholdRule

__all__ = ["ALL", "Coverage", "Month", "Report", "Source", "report"]

ALL = "all"
"""The source that combines all others: what people would have seen."""
_BY_ALARM = ("accuracy", "precision", "recall", "f1")
"""Figures of the alarms; the others are of the probability."""
_MOST_MONTHS = 600

Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The results of one source of alarms: the model, shortages, a rule-based detector, or all together."""

    source: str
    alarms: int
    precision: float | None
    recall: float | None
    saved: float
    """Hours of failing jobs that it would have stopped."""
    delayed: float
    """Hours of good jobs that it would have stopped."""
    missing: str | None = None
    """Why it could not use all of its evidence."""


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
    """The share of completed jobs within their bound on run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the bound on run time held; it should hold for 95 % of the jobs that complete."""

    completed: float | None
    all_ended: float | None
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    target: Target
    predicted: int
    judged: int
    """Predicted jobs whose outcome counts for the target."""
    trainings: int
    kept: int
    """Steps in which the previous model stayed in use, because a new one was worse or could not be compared."""
    searches: int
    without_model: int
    """Steps in which no model could be trained."""
    figures: list[Metric]
    sources: list[Source]
    """The last one is ALL."""
    months: list[Month]
    unmet: int
    """Steps in which no threshold met the rule."""
    hours: str
    """The unit of saved, delayed and wasted: node-hours, or CPU-hours if a log has no nodes."""
    wasted: float
    """Hours of failing jobs without an alarm."""
    runtime: Coverage
    promise: Promise | None
    """None for a rule that promises no precision."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def report(
    walked: Sequence[StepResult], target: Target, *, rule: ThresholdRule | None = None, seed: int = 0
) -> Report:
    """`rule`: the one by which the thresholds were chosen."""
    jobs = pl.concat([each.jobs for each in walked])
    counts = counted(jobs, target)
    if not counts.any():
        raise ModelError(f"no predicted job has an outcome for the target {target}; read a longer log")
    judged, y = jobs.filter(counts), failed(jobs.filter(counts))
    p = np.concatenate([each.probability for each in walked])[counts]
    alarms = {
        source: np.concatenate([each.alarms[source] for each in walked])[counts]
        for source in walked[0].alarms
    }
    alarms[ALL] = np.any(list(alarms.values()), axis=0)
    missing = {source: reason for each in walked for source, reason in each.missing.items()}
    held = _held(judged, np.concatenate([each.bound for each in walked])[counts])
    hours = node_hours(judged)
    names = judged.select(pl.from_epoch("submit", time_unit="s").dt.strftime("%Y-%m")).to_series().to_numpy()
    promise = None
    if rule and rule.kind == "precision_at_least":
        every = [each.expected for each in walked for _ in range(each.jobs.height)]
        expected = [each for each, wanted in zip(every, counts.tolist(), strict=True) if wanted]
        promise = months_kept(rule.value, names, y, alarms[MODEL], expected)
    return Report(
        target=target,
        predicted=jobs.height,
        judged=judged.height,
        trainings=sum(each.trained for each in walked),
        kept=sum(each.kept is not None for each in walked),
        searches=sum(each.searched for each in walked),
        without_model=sum(each.refused is not None for each in walked),
        figures=_figures(y, p, alarms[ALL], judged["submit"].to_numpy(), seed),
        sources=[_source(name, flags, y, hours, missing.get(name)) for name, flags in alarms.items()],
        months=_months(names, y, p, alarms[ALL], held),
        unmet=sum(not each.met for each in walked if each.refused is None),
        hours=hours_unit(judged),
        wasted=float(hours[~alarms[ALL] & (y > 0)].sum()),
        runtime=Coverage(
            completed=_mean(held[y == 0]), all_ended=_mean(held), jobs=int(np.isfinite(held[y == 0]).sum())
        ),
        promise=promise,
    )


def _figures(y: Floats, p: Floats, alarms: Flags, submit: NDArray[Any], seed: int) -> list[Metric]:
    by_alarm = {m.name: m for m in evaluate(y, alarms.astype(float), submit, threshold=0.5, seed=seed)}
    by_probability = evaluate(y, p, submit, threshold=0.5, seed=seed)
    return [by_alarm[m.name] if m.name in _BY_ALARM else m for m in by_probability]


def _source(name: str, alarms: Flags, y: Floats, hours: Floats, missing: str | None) -> Source:
    precision, recall = _precision_recall(alarms, y)
    return Source(
        source=name,
        alarms=int(alarms.sum()),
        precision=precision,
        recall=recall,
        saved=float(hours[alarms & (y > 0)].sum()),
        delayed=float(hours[alarms & (y == 0)].sum()),
        missing=missing,
    )


def _precision_recall(alarms: Flags, y: Floats) -> tuple[float | None, float | None]:
    hits = float(y[alarms].sum())
    return hits / alarms.sum() if alarms.any() else None, hits / y.sum() if y.any() else None


def _held(jobs: pl.DataFrame, bound: Floats) -> Floats:
    """1 if a job kept to its bound, 0 if not, NaN if either is unknown."""
    elapsed = jobs["elapsed"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return np.where(np.isnan(elapsed) | np.isnan(bound), np.nan, (elapsed <= bound).astype(np.float64))


def _months(names: NDArray[Any], y: Floats, p: Floats, alarms: Flags, held: Floats) -> list[Month]:
    found = []
    for name in np.unique(names)[:_MOST_MONTHS]:
        rows = names == name
        bad = y[rows]
        both = 0 < bad.mean() < 1
        precision, recall = _precision_recall(alarms[rows], bad)
        found.append(
            Month(
                month=str(name),
                jobs=int(rows.sum()),
                failing=float(bad.mean()),
                alarms=int(alarms[rows].sum()),
                precision=precision,
                recall=recall,
                auc=measure("auc", bad, p[rows]) if both else None,
                average_precision=measure("average_precision", bad, p[rows]) if both else None,
                covered=_mean(held[rows & (y == 0)]),
            )
        )
    return found


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
