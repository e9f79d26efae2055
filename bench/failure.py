"""Failure prediction on public logs: the first 80 % by time train, the last 20 % are predicted; ours beside the published recipe.

`python -m bench failure`; with TOCSIN_BENCH_LOGS=KTH,DOST only logs whose name has one of these words. At `submit` it is
told twice: with outcomes known `history.lag` after the end, as tocsin counts them, and at once (lag 0), as others count them.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.intake import COLUMNS
from bench.rivals import FINISHED, STARTED, SUBMITTED, best_f1, fields_matrix, published
from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.resources import ResourceModel
from tocsin.history.replay import Replay
from tocsin.models.curves import curves
from tocsin.models.metrics import evaluate
from tocsin.models.splits import first_last
from tocsin.sources.sacct import SacctFile
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile
from tocsin.store.jobs import LAG

__all__ = ["LABELS", "logs", "run", "with_outcomes"]

TRIALS = 4
RIVAL_TRIALS = 20
STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END)
FIELDS = {Stage.SUBMIT: SUBMITTED, Stage.START: STARTED, Stage.EARLY: STARTED, Stage.END: FINISHED}
SHOWN = ("auc", "average_precision", "f1", "precision", "recall", "brier", "calibration_error", "baseline")
SPLIT = "first 80 % by time train with the outcomes known by then, last 20 % are predicted"
LABELS = [str(outcome) for outcome in (*TARGETS[Target.UNSUCCESSFUL], Outcome.COMPLETED)]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    stages = [Stage(s) for s in os.environ.get("TOCSIN_BENCH_STAGES", ",".join(STAGES)).split(",")]
    found: dict[str, Any] = {}
    for name, read in logs(folder):
        if not any(word in name for word in wanted):
            continue
        log, found[name] = read(), {}
        for stage in stages:
            try:
                found[name][str(stage)] = measured(log, stage)
            except ModelError as error:  # too few jobs of it reach the stage
                found[name][str(stage)] = {"refused": str(error)}
                continue
            if stage is Stage.SUBMIT:
                found[name]["submit, lag 0"] = measured(_lag(log, 0), stage)
            print(name, stage, found[name][str(stage)]["tocsin"]["auc"], flush=True)
    return {
        "target": str(Target.UNSUCCESSFUL),
        "split": SPLIT,
        "lag": LAG,
        "trials": TRIALS,
        "rival_trials": RIVAL_TRIALS,
        "logs": found,
    }


def _lag(log: pl.DataFrame, lag: int) -> pl.DataFrame:
    return log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + lag))


def logs(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each log's name and how to read it."""
    for path in sorted((folder / "swf").glob("*.swf.gz")):
        yield path.name.removesuffix(".swf.gz"), lambda path=path: with_outcomes(SwfFile(path))
    for path in sorted((folder / "sacct").glob("*.log.gz")):
        yield (
            f"sacct {path.name.removesuffix('.log.gz')}",
            lambda path=path: with_outcomes(SacctFile(path, columns=COLUMNS, zone="America/New_York")),
        )
    for path in sorted((folder / "accounting").glob("mit-*.csv.gz")):
        yield (
            "MIT Supercloud",
            lambda path=path: with_outcomes(TableFile(path, "slurm-database", cluster="mit")),
        )


def measured(log: pl.DataFrame, stage: Stage) -> dict[str, Any]:
    """Both recipes on one log at one stage, on the same jobs."""
    jobs = log.filter(reached_at(stage).is_not_null(), pl.col("outcome").is_in(LABELS))
    submit, known = (jobs[name].to_numpy() for name in ("submit", "known_at"))
    y = jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64)
    cut = first_last(log["submit"].to_numpy(), log["known_at"].fill_null(2**62).to_numpy()).cut
    train = np.flatnonzero((known <= cut) & (submit < cut))
    test = np.flatnonzero(submit >= cut)
    result: dict[str, Any] = {
        "known": "only after the end" if stage is Stage.END else f"at {stage}",
        "train": len(train),
        "test": len(test),
        "failing": round(float(y[test].mean()), 4),
    }
    began = time.perf_counter()
    detector = FailureDetector(
        target=Target.UNSUCCESSFUL, threads=1, explainers=False, resources=ResourceModel({})
    )
    past = Replay(log)
    model = detector.fit(jobs[train], past, stage=stage, seed=0, budget=Budget(trials=TRIALS))
    result["fit_seconds"] = round(time.perf_counter() - began, 1)
    asked = jobs[test]
    history = history_features(asked, past, stage=stage)
    began = time.perf_counter()
    p = model.probabilities(asked, history)
    result["scored_per_second"] = round(len(test) / (time.perf_counter() - began))
    result["tocsin"] = _figures(y[test], p, submit[test], _best_f1(model))
    result["both_classes"] = _both_classes(y[test], p)
    result["features"] = len(model.columns.names)
    began = time.perf_counter()
    X = fields_matrix(jobs, FIELDS[stage], train)
    rival = published(X, y, submit, known, train, test, trials=RIVAL_TRIALS)
    result["published_seconds"] = round(time.perf_counter() - began, 1)
    result["published"] = _figures(y[test], rival.p, submit[test], rival.threshold)
    if stage is Stage.SUBMIT:
        curve = curves(y[test], p, threshold=0.5)["pr"]
        at = np.interp(np.linspace(0, 1, 51), curve["recall"], curve["precision"])
        result["precision_by_recall"] = at.round(3).tolist()
    return result


def _both_classes(y: Any, p: Any) -> dict[str, Any]:
    """As HPE's Table I: each class as the positive one, at probability 0.5."""
    found = {}
    for name, positive, rings in (("completed", y == 0, p < 0.5), ("unsuccessful", y > 0, p >= 0.5)):
        hits = int((positive & rings).sum())
        precision = hits / max(1, int(rings.sum()))
        recall = hits / max(1, int(positive.sum()))
        f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
        found[name] = {
            "precision": _short(precision), "recall": _short(recall), "f1": _short(f1), "jobs": int(positive.sum()),
        }  # fmt: skip
    return found


def _best_f1(model: FittedFailure) -> float:
    """The threshold with the best F1 in the holdout, which lies inside the training; found as for the rival."""
    holdout = model.holdout
    return best_f1(holdout.failed, model.calibrated.calibrator.apply(holdout.scores))


def _figures(y: Any, p: Any, submit: Any, threshold: float) -> dict[str, Any]:
    found = {m.name: m for m in evaluate(y, p, submit, threshold=threshold)}
    return {
        name: [_short(found[name].value), _short(found[name].low), _short(found[name].high)] for name in SHOWN
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def with_outcomes(source: Any) -> pl.DataFrame:
    """All jobs of a log, their outcomes known `history.lag` after the end."""
    log: pl.DataFrame = pl.concat(batch.jobs for batch in source.batches())
    return log.with_columns(
        known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.coalesce("known_at", pl.col("end") + LAG))
    )
