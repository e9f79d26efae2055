"""Day one: the shipped failure model on clusters that it has never seen, beside own-trained models and the blend of both.

`python -m bench dayone`; TOCSIN_BENCH_LOGS=KTH,DOST takes only logs whose name has one of these words, TOCSIN_BENCH_STAGES
only these stages, and TOCSIN_BENCH_FILES=a.swf:b.csv further logs, of any format that `tocsin import` reads. A log that the
shipped model learned from is measured with a model that was trained without it; every other log in TOCSIN_DATA is measured
with the shipped model as it is. `python -m bench walk` compares the three month by month, with weekly retraining.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tools.failure.lessons import Lesson, lessons
from tools.failure.training import learned
from tools.make_failure_weights import DATA

from bench.failure import LABELS, logs, with_outcomes
from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError, TocsinError
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
from tocsin.models.metrics import evaluate
from tocsin.models.splits import first_last
from tocsin.sources.formats import open_log

__all__ = ["FEWEST", "all_logs", "never_seen", "own_alone", "run", "summary", "taught_by"]

STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY)
TRIALS = 2
FEWEST = 300
"""Fewer jobs of a log, or of a month, say nothing."""
SPLIT = "first 80 % by time train with the outcomes known by then, last 20 % are predicted"
NAMES = ("shipped", "own", "blend")


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    stages = [Stage(s) for s in os.environ.get("TOCSIN_BENCH_STAGES", ",".join(STAGES)).split(",")]
    found: dict[str, Any] = {}
    for stage in stages:
        taught = taught_by(folder, stage)
        for name, read in all_logs(folder):
            if any(word in name for word in wanted):
                into = found.setdefault(name, {"left_out": name in DATA, "stages": {}})
                try:
                    into["stages"][str(stage)] = _split(read(), stage, never_seen(name, taught, stage))
                except TocsinError as error:  # too few jobs of it reach the stage, or it is no log
                    into["stages"][str(stage)] = {"refused": str(error)}
                print(name, stage, into["stages"][str(stage)], flush=True)
    return {"target": str(Target.UNSUCCESSFUL), "split": SPLIT, "logs": found, **summary(found)}


def all_logs(folder: Path) -> Iterator[tuple[str, Callable[[], pl.DataFrame]]]:
    """The public logs, whatever else lies beside them, and the files of TOCSIN_BENCH_FILES."""
    yield from logs(folder)
    named = [Path(path) for path in os.environ.get("TOCSIN_BENCH_FILES", "").split(":") if path]
    beside = [path for below in ("swf", "sacct", "accounting") for path in sorted((folder / below).glob("*"))]
    for path in [path for path in beside if not path.match(KNOWN[path.parent.name])] + named:
        yield path.name, partial(_read, path)


KNOWN = {"swf": "*.swf.gz", "sacct": "*.log.gz", "accounting": "mit-*.csv.gz"}
"""The files that `bench failure` reads."""


def _read(path: Path) -> pl.DataFrame:
    return with_outcomes(open_log(str(path), cluster=path.name.split(".")[0], zone="UTC"))


def taught_by(folder: Path, stage: Stage) -> list[Lesson]:
    return list(lessons([(name, read) for name, read in logs(folder) if name in DATA], stage))


def never_seen(name: str, taught: Sequence[Lesson], stage: Stage) -> FittedFailure:
    """The shipped model, or the same trained without this log."""
    shipped = shipped_model(stage)
    assert shipped is not None, "it is shipped for all stages"
    shipped = shipped.for_target(Target.UNSUCCESSFUL)
    if name not in DATA:
        return shipped
    return replace(shipped, booster=learned([lesson for lesson in taught if lesson.cluster != name]))


def _split(log: pl.DataFrame, stage: Stage, shipped: FittedFailure) -> dict[str, Any]:
    jobs = log.filter(reached_at(stage).is_not_null(), pl.col("outcome").is_in(LABELS)).sort(
        "submit", "job_id", "task", nulls_last=False
    )
    known = CachedKnown(Replay(log), jobs, stage=stage)
    cut = first_last(log["submit"].to_numpy(), log["known_at"].fill_null(2**62).to_numpy()).cut
    later = jobs.filter(pl.col("submit") >= cut)
    y, submit = _failed(later), later["submit"].to_numpy()
    if later.height < FEWEST or np.unique(y).size < 2:
        raise ModelError(
            f"{later.height:,} jobs to predict are too few, or all ended alike; it takes {FEWEST}"
        )
    past = jobs.filter(pl.col("known_at") <= cut, pl.col("submit") < cut)
    blend = _detector(shipped).fit(past, known, stage=stage, seed=0, budget=Budget(trials=TRIALS))
    history = history_features(later, known, stage=stage)
    figures = {}
    for name, model in zip(NAMES, (shipped, own_alone(blend), blend), strict=True):
        [auc] = [
            each
            for each in evaluate(y, model.probabilities(later, history), submit, threshold=0.5)
            if each.name == "auc"
        ]
        figures[name] = [_short(auc.value), _short(auc.low), _short(auc.high)]
    return {"jobs": later.height, **figures, "own_weight": blend.calibrated.own_weight}


def own_alone(blend: FittedFailure) -> FittedFailure:
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


def summary(found: dict[str, Any]) -> dict[str, Any]:
    rows = [
        (stage, row) for log in found.values() for stage, row in log["stages"].items() if "refused" not in row
    ]
    stages = list(dict.fromkeys(stage for stage, _ in rows))
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
    }  # fmt: skip


def _failed(jobs: pl.DataFrame) -> Any:
    return jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
