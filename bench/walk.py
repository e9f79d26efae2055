"""The weekly walk through whole logs at submit, target unsuccessful, as the service would have gone through them.

`python -m bench walk`; TOCSIN_BENCH_LOGS=KTH,DOST takes only logs whose name has one of these words, and
TOCSIN_BENCH_EVERY=28 retrains every four weeks, which is a quarter of the work and a little less fresh. A log that the shipped
failure model learned from begins with a model that was trained without it. Month by month, the answers are compared with
those of the own model and of the shipped one alone, and the model's alarms with the precision that was promised.
"""

import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.dayone import FEWEST, all_logs, never_seen, own_alone, taught_by
from tocsin.core.detector import Known
from tocsin.core.errors import TocsinError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.labels import failed
from tocsin.history.replay import Replay
from tocsin.learn.audit import audit
from tocsin.learn.held_back import counted
from tocsin.learn.report import Report, Source, report
from tocsin.learn.walk import StepResult, Walk, WalkRequest
from tocsin.limits.detector import DETECTOR as LIMITS
from tocsin.models.metrics import Sorted, measure, measure_weighted
from tocsin.models.splits import DAY, NEVER, first_last

__all__ = ["run", "summary"]

AUDITED = ("DOST-COARE", "MIT Supercloud")
WEEK = 7
BEHIND = 0.005
RESAMPLES = 200
Floats = NDArray[np.float64]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    taught = taught_by(folder, Stage.SUBMIT)
    request = WalkRequest(every_days=float(os.environ.get("TOCSIN_BENCH_EVERY", WEEK)))
    found: dict[str, Any] = {}
    for name, read in all_logs(folder):
        if any(word in name for word in wanted):
            label = name if request.every_days == WEEK else f"{name}, every {request.every_days:g} days"
            try:
                shipped = never_seen(name, taught, Stage.SUBMIT)
                found[label] = _walked(name, read(), shipped, request)
            except TocsinError as error:  # too few jobs, or it is no log
                found[label] = {"refused": str(error)}
            shown = {key: found[label].get(key) for key in ("seconds", "promise", "blend", "audit")}
            print(label, shown, flush=True)
    return {
        "target": str(Target.UNSUCCESSFUL),
        "stage": "submit",
        "fewest": FEWEST,
        "behind": BEHIND,
        "logs": found,
        **summary(found),
    }


def _walked(name: str, jobs: pl.DataFrame, shipped: FittedFailure, request: WalkRequest) -> dict[str, Any]:
    detector = FailureDetector(target=Target.UNSUCCESSFUL, threads=1, shipped=shipped)
    beside = Beside(shipped)

    def walk(
        jobs: pl.DataFrame,
        start: int | None = None,
        asked: Callable[[pl.DataFrame, Known, FittedFailure], None] | None = None,
    ) -> Walk:
        rules = {LIMITS.name: LIMITS}
        return Walk(jobs, Replay(jobs), detector, request, rules=rules, start=start, asked=asked)

    began = time.process_time()
    walked = list(walk(jobs, asked=beside))
    told = report(walked, Target.UNSUCCESSFUL, rule=detector.rule)
    found = {
        "every_days": request.every_days,
        "seconds": round(time.process_time() - began, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "trainings": told.trainings,
        "kept": told.kept,
        "without_model": told.without_model,
        "predicted": told.predicted,
        "figures": _figures(told),
        "last_fifth": _figures(report(_last(walked, jobs), Target.UNSUCCESSFUL)),
        "runtime_covered": _short(told.runtime.completed),
        "runtime_covered_all": _short(told.runtime.all_ended),
        "wasted": round(told.wasted),
        "promise": told.to_json()["promise"],
        "sources": {each.source: _source(each) for each in told.sources},
        "months": [[m.month, m.jobs, _short(m.auc), _short(m.covered)] for m in told.months],
        "blend": _compared(walked, beside),
    }
    if any(name.startswith(word) for word in AUDITED):
        proof = audit(jobs, walked, walk)
        found["audit"] = {"compared": proof.compared, "differing": proof.differing}
    return found


class Beside:
    """What the own model alone and the shipped model alone say of the jobs of each step."""

    def __init__(self, shipped: FittedFailure) -> None:
        self._shipped = shipped
        self.own: list[Floats] = []
        self.shipped: list[Floats] = []

    def __call__(self, jobs: pl.DataFrame, known: Known, model: FittedFailure) -> None:
        history = history_features(jobs, known, stage=Stage.SUBMIT)
        self.shipped.append(self._shipped.probabilities(jobs, history))
        own = model.experience is not None
        self.own.append(
            own_alone(model).probabilities(jobs, history) if own else np.full(jobs.height, np.nan)
        )


def _compared(walked: Sequence[StepResult], beside: Beside) -> list[dict[str, Any]]:
    """The AUC of each month with enough jobs, all of them predicted with an own model."""
    jobs = pl.concat([each.jobs for each in walked])
    counts = counted(jobs, Target.UNSUCCESSFUL)
    jobs, y = jobs.filter(counts), failed(jobs.filter(counts))
    names = jobs.select(pl.from_epoch("submit", time_unit="s").dt.strftime("%Y-%m")).to_series().to_numpy()
    scores = {
        "shipped": np.concatenate(beside.shipped)[counts],
        "own": np.concatenate(beside.own)[counts],
        "blend": np.concatenate([each.probability for each in walked])[counts],
        "follower": _follower(walked, beside)[counts],
    }
    weights = np.concatenate([np.full(each.jobs.height, each.own_weight or 0.0) for each in walked])[counts]
    found = []
    for name in np.unique(names):
        rows = np.flatnonzero(names == name)
        if len(rows) < FEWEST or np.isnan(scores["own"][rows]).any() or np.unique(y[rows]).size < 2:
            continue
        month = {each: measure("auc", y[rows], p[rows]) for each, p in scores.items()}
        better = max(("shipped", "own"), key=lambda each: month[each])
        behind = month[better] - month["blend"]
        told = {each: _short(auc) for each, auc in month.items()}
        found.append(
            {
                "month": str(name),
                "jobs": len(rows),
                **told,
                "own_weight": _short(float(weights[rows].mean())),
                "behind": _short(behind),
            }
        )
        if behind > BEHIND:
            two = Sorted(y[rows], scores[better][rows]), Sorted(y[rows], scores["blend"][rows])
            found[-1]["behind_interval"] = _interval(jobs[rows], *two)
    return found


def _follower(walked: Sequence[StepResult], beside: Beside) -> Floats:
    """What one would say who always takes the model that ranked the jobs of the last week better."""
    jobs = pl.concat([each.jobs for each in walked])
    submit, known = (jobs[name].fill_null(NEVER).to_numpy() for name in ("submit", "known_at"))
    y = jobs["outcome"].ne("completed").fill_null(False).to_numpy().astype(np.float64)
    counts = counted(jobs, Target.UNSUCCESSFUL)
    both = {"own": np.concatenate(beside.own), "shipped": np.concatenate(beside.shipped)}
    found, end = [], 0
    for each in walked:
        last = counts & (known <= each.step.cut) & (submit >= each.step.cut - WEEK * DAY)
        last &= ~np.isnan(both["own"])
        better = "own"
        if np.unique(y[last]).size > 1:
            better = max(both, key=lambda name: measure("auc", y[last], both[name][last]))
        found.append(both[better][end : end + each.jobs.height])
        end += each.jobs.height
    return np.concatenate(found)


def _interval(jobs: pl.DataFrame, better: Sorted, blend: Sorted) -> list[float | None]:
    """By how much the blend is behind, with 95 % confidence: days are drawn with replacement."""
    days = np.unique(jobs["submit"].to_numpy() // DAY, return_inverse=True)[1]
    count, random = int(days.max()) + 1, np.random.default_rng(0)
    gaps = []
    for _ in range(RESAMPLES):
        times = np.bincount(random.integers(count, size=count), minlength=count)[days].astype(np.float64)
        gaps.append(measure_weighted("auc", better, times) - measure_weighted("auc", blend, times))
    return [_short(float(each)) for each in np.nanquantile(gaps, [0.025, 0.975])]


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Over all logs: the months of the blend, and those of the promise."""
    logs = [log for log in found.values() if "refused" not in log]
    months = [month for log in logs for month in log["blend"]]
    behind = [month for month in months if month["behind"] > BEHIND]
    promises = [log["promise"] for log in logs if log["promise"]]
    total = {
        key: sum(each[key] for each in promises) for key in ("months", "silent", "kept", "possible", "inside")
    }
    return {
        "blend_months": len(months),
        "blend_months_behind": len(behind),
        "blend_months_behind_beyond_luck": sum(month["behind_interval"][0] > BEHIND for month in behind),
        "blend_most_behind": max((month["behind"] for month in months), default=None),
        "blend_mean_gain": {
            name: _short(float(np.mean([month["blend"] - month[name] for month in months])))
            for name in ("shipped", "own")
            if months
        },
        "fixed_months_behind": {
            name: sum(max(month["shipped"], month["own"]) - month[name] > BEHIND for month in months)
            for name in ("shipped", "own")
        },
        "follower_months_behind": sum(
            max(month["shipped"], month["own"]) - month["follower"] > BEHIND for month in months
        ),
        "follower_most_behind": max(
            (_short(max(month["shipped"], month["own"]) - month["follower"]) for month in months),
            default=None,
        ),
        "fixed_in_hindsight_months_behind": sum(_fewest_behind(log["blend"]) for log in logs),
        "promise": total,
        **{
            f"promise_{key}": _short((total[key] + total["silent"]) / max(1, total["months"]))
            for key in ("kept", "possible", "inside")
        },
    }


def _fewest_behind(months: Sequence[dict[str, Any]]) -> int:
    """Months behind of the one model that would have been behind in fewer of this log's months."""
    return min(
        sum(max(month["shipped"], month["own"]) - month[name] > BEHIND for month in months)
        for name in ("shipped", "own")
    )


def _last(walked: list[StepResult], jobs: pl.DataFrame) -> list[StepResult]:
    """Its predictions of the jobs that a single split predicts: the last 20 % by time."""
    cut = first_last(jobs["submit"].to_numpy(), jobs["known_at"].fill_null(NEVER).to_numpy()).cut
    found = []
    for each in walked:
        rows = np.flatnonzero(each.jobs["submit"].to_numpy() >= cut)
        if len(rows):
            found.append(
                replace(
                    each,
                    jobs=each.jobs[rows],
                    probability=each.probability[rows],
                    alarms={source: flags[rows] for source, flags in each.alarms.items()},
                    bound=each.bound[rows],
                )
            )
    return found


def _source(each: Source) -> dict[str, float | None]:
    return {
        "alarms": each.alarms,
        "precision": _short(each.precision),
        "recall": _short(each.recall),
        "saved": round(each.saved),
        "delayed": round(each.delayed),
    }


def _figures(told: Report) -> dict[str, list[float | None]]:
    return {m.name: [_short(m.value), _short(m.low), _short(m.high)] for m in told.figures}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
