"""Day one: the shipped failure model on clusters that it has never seen, beside own-trained models and the blend of both.

`python -m bench dayone`; TOCSIN_BENCH_LOGS=KTH,DOST takes only logs whose name has one of these words, and
TOCSIN_BENCH_STAGES only these stages. A log that the shipped model learned from is measured with a model that was
trained without it; every other log below TOCSIN_DATA is measured with the shipped model as it is.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tools.failure.lessons import Lesson, lessons
from tools.failure.training import learned
from tools.make_failure_weights import DATA

from bench.failure import LABELS, logs
from tocsin.core.detector import Budget, Known
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.resources import ResourceModel
from tocsin.failure.shipped import shipped_model
from tocsin.history.cached import CachedKnown
from tocsin.history.replay import Replay
from tocsin.models.calibration import IDENTITY
from tocsin.models.metrics import evaluate, measure
from tocsin.models.splits import first_last, walk

__all__ = ["run"]

STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY)
TRIALS = 2
MONTH = 28
FEWEST = 300
"""Jobs of a month that counts."""
MOST_MONTHS = 12
"""Of one log, spread evenly over it."""
SPLIT = "first 80 % by time train with the outcomes known by then, last 20 % are predicted"
MONTHS = f"months of {MONTH} days from the first job on, each predicted by what was known before it"
NAMES = ("shipped", "own", "blend")


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    stages = [Stage(s) for s in os.environ.get("TOCSIN_BENCH_STAGES", ",".join(STAGES)).split(",")]
    found: dict[str, Any] = {}
    for stage in stages:
        taught = list(lessons([(name, read) for name, read in logs(folder) if name in DATA], stage))
        for name, read in logs(folder):
            if any(word in name for word in wanted):
                into = found.setdefault(name, {"left_out": name in DATA, "stages": {}})
                _measure(into, read, stage, _never_seen(name, taught, stage))
                print(name, stage, into["stages"][str(stage)], into.get("months"), flush=True)
    return {
        "target": str(Target.UNSUCCESSFUL),
        "split": SPLIT,
        "months": MONTHS,
        "fewest": FEWEST,
        "logs": found,
        **_summary(found),
    }


def _never_seen(name: str, taught: Sequence[Lesson], stage: Stage) -> FittedFailure:
    """The shipped model, or the same trained without this log."""
    shipped = shipped_model(stage)
    assert shipped is not None, "it is shipped for all stages"
    shipped = shipped.for_target(Target.UNSUCCESSFUL)
    if name not in DATA:
        return shipped
    return replace(shipped, booster=learned([lesson for lesson in taught if lesson.cluster != name]))


def _measure(
    into: dict[str, Any], read: Callable[[], pl.DataFrame], stage: Stage, shipped: FittedFailure
) -> None:
    log = read()
    jobs = log.filter(reached_at(stage).is_not_null(), pl.col("outcome").is_in(LABELS)).sort(
        "submit", "job_id", "task", nulls_last=False
    )
    known = CachedKnown(Replay(log), jobs, stage=stage)
    try:
        into["stages"][str(stage)] = _split(log, jobs, known, stage, shipped)
    except ModelError as error:  # too few jobs of it reach the stage
        into["stages"][str(stage)] = {"refused": str(error)}
    if stage is Stage.SUBMIT:
        into["months"] = list(_months(jobs, known, shipped))


def _split(
    log: pl.DataFrame, jobs: pl.DataFrame, known: Known, stage: Stage, shipped: FittedFailure
) -> dict[str, Any]:
    cut = first_last(log["submit"].to_numpy(), log["known_at"].fill_null(2**62).to_numpy()).cut
    past = jobs.filter(pl.col("known_at") <= cut, pl.col("submit") < cut)
    blend = _detector(shipped).fit(past, known, stage=stage, seed=0, budget=Budget(trials=TRIALS))
    later = jobs.filter(pl.col("submit") >= cut)
    y, submit = _failed(later), later["submit"].to_numpy()
    history = history_features(later, known, stage=stage)
    figures = {}
    for name, model in zip(NAMES, (shipped, _own(blend), blend), strict=True):
        [auc] = [
            each
            for each in evaluate(y, model.probabilities(later, history), submit, threshold=0.5)
            if each.name == "auc"
        ]
        figures[name] = [_short(auc.value), _short(auc.low), _short(auc.high)]
    return {"jobs": later.height, **figures, "own_weight": blend.calibrated.own_weight}


def _months(jobs: pl.DataFrame, known: Known, shipped: FittedFailure) -> Iterator[dict[str, Any]]:
    """Each model's AUC in each month; where nothing can be trained yet, the shipped model is the answer."""
    steps = [
        step
        for step in walk(jobs["submit"].to_numpy(), jobs["known_at"].to_numpy(), first=0.0, every_days=MONTH)
        if len(step.test) >= FEWEST and np.unique(_failed(jobs[step.test])).size > 1
    ]
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(MOST_MONTHS, len(steps))).astype(int))
    detector = _detector(shipped)
    for step in [steps[place] for place in chosen]:
        later = jobs[step.test]
        history = history_features(later, known, stage=Stage.SUBMIT)
        y = _failed(later)
        models = {"shipped": shipped}
        try:
            blend = detector.fit(
                jobs[step.train], known, stage=Stage.SUBMIT, seed=0, budget=Budget(trials=TRIALS)
            )
            detector = replace(detector, plan=blend.plan)  # a walk searches seldom
            models |= {"own": _own(blend), "blend": blend}
        except ModelError:
            blend = None
        yield {
            "since": int(step.cut),
            "trained": len(step.train),
            "jobs": later.height,
            **{
                name: _short(measure("auc", y, model.probabilities(later, history)))
                for name, model in models.items()
            },
            "own_weight": blend.calibrated.own_weight if blend else None,
        }


def _own(blend: FittedFailure) -> FittedFailure:
    """What was trained here, alone: its raw scores, for the calibration is of the blend."""
    return replace(blend, experience=None, calibrated=replace(blend.calibrated, calibrator=IDENTITY))


def _detector(shipped: FittedFailure) -> FailureDetector:
    return FailureDetector(
        target=Target.UNSUCCESSFUL,
        shipped=shipped,
        threads=1,
        explainers=False,
        resources=ResourceModel({}),
    )


def _summary(found: dict[str, Any]) -> dict[str, Any]:
    rows = [
        (stage, row) for log in found.values() for stage, row in log["stages"].items() if "refused" not in row
    ]
    stages = list(dict.fromkeys(stage for stage, _ in rows))
    months = [month for log in found.values() for month in log.get("months", ()) if "blend" in month]
    behind = [max(month["own"], month["shipped"]) - month["blend"] for month in months]
    return {
        "mean_loss": {
            stage: _short(float(np.mean([row["own"][0] - row["shipped"][0] for at, row in rows if at == stage])))
            for stage in stages
        },
        "mean_gain_of_blend": {
            stage: _short(float(np.mean(gains)))
            for stage in stages
            if (gains := [row["blend"][0] - row["own"][0] for at, row in rows if at == stage and row["blend"][0]])
        },
        "blend_months": len(months),
        "blend_months_behind": sum(each > 0.005 for each in behind),
        "blend_most_behind": _short(max(behind, default=None)),
    }  # fmt: skip


def _failed(jobs: pl.DataFrame) -> Any:
    return jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
