"""Failure prediction on public logs: the first 80 % by time train, the last 20 % are predicted; ours beside the published recipe.

`python -m bench failure`; with TOCSIN_BENCH_LOGS=KTH,DOST only logs whose name has one of these words.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.intake import COLUMNS
from bench.rivals import FINISHED, STARTED, SUBMITTED, fields_matrix, published
from tocsin.core.detector import Budget
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.labels import reached
from tocsin.history.replay import Replay
from tocsin.models.metrics import evaluate
from tocsin.models.splits import first_last
from tocsin.sources.sacct import SacctFile
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile

__all__ = ["run"]

LAG = 60
TRIALS = 12
STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END)
FIELDS = {Stage.SUBMIT: SUBMITTED, Stage.START: STARTED, Stage.EARLY: STARTED, Stage.END: FINISHED}
SHOWN = ("auc", "average_precision", "f1", "precision", "recall", "brier", "calibration_error", "baseline")
SPLIT = "first 80 % by time train with the outcomes known by then, last 20 % are predicted"
LABELS = [str(outcome) for outcome in (*TARGETS[Target.UNSUCCESSFUL], Outcome.COMPLETED)]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    wanted = os.environ.get("TOCSIN_BENCH_LOGS", "").split(",")
    stages = [Stage(s) for s in os.environ.get("TOCSIN_BENCH_STAGES", ",".join(STAGES)).split(",")]
    found = {}
    for name, log in logs(folder):
        if any(word in name for word in wanted):
            found[name] = {str(stage): measured(log(), stage) for stage in stages}
    return {"target": str(Target.UNSUCCESSFUL), "split": SPLIT, "trials": TRIALS, "logs": found}


def logs(folder: Path) -> Iterator[tuple[str, Any]]:
    """Each log's name and how to read it."""
    for path in sorted((folder / "swf").glob("*.swf.gz")):
        yield path.name.removesuffix(".swf.gz"), lambda path=path: _known(SwfFile(path))
    for path in sorted((folder / "sacct").glob("*.log.gz")):
        yield (
            f"sacct {path.name.removesuffix('.log.gz')}",
            lambda path=path: _known(SacctFile(path, columns=COLUMNS, zone="America/New_York")),
        )
    for path in sorted((folder / "accounting").glob("mit-*.csv.gz")):
        yield "MIT Supercloud", lambda path=path: _known(TableFile(path, "slurm-database", cluster="mit"))


def measured(log: pl.DataFrame, stage: Stage) -> dict[str, Any]:
    """Both recipes on one log at one stage, on the same jobs."""
    jobs = log.filter(reached(stage), pl.col("outcome").is_in(LABELS))
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
    detector = FailureDetector(target=Target.UNSUCCESSFUL)
    past = Replay(log)
    model = detector.fit(jobs[train], past, stage=stage, seed=0, budget=Budget(trials=TRIALS))
    result["fit_seconds"] = round(time.perf_counter() - began, 1)
    asked = jobs[test]
    history = past.features(asked, stage=stage)
    began = time.perf_counter()
    p = model.probabilities(asked, history)
    result["scored_per_second"] = round(len(test) / (time.perf_counter() - began))
    result["tocsin"] = _figures(y[test], p, submit[test], _best_f1(model))
    result["parameters"] = dict(model.parameters)
    began = time.perf_counter()
    X = fields_matrix(jobs, FIELDS[stage], train)
    rival = published(X, y, submit, known, train, test, trials=TRIALS)
    result["published_seconds"] = round(time.perf_counter() - began, 1)
    result["published"] = _figures(y[test], rival.p, submit[test], rival.threshold)
    return result


def _best_f1(model: FittedFailure) -> float:
    """The threshold with the best F1 in the rehearsal, which lies inside the training."""
    scored = [(2 * t.precision * t.recall / (t.precision + t.recall), t.value)
              for t in model.table if t.precision and t.recall]  # fmt: skip
    return max(scored)[1]


def _figures(y: Any, p: Any, submit: Any, threshold: float) -> dict[str, Any]:
    found = {m.name: m for m in evaluate(y, p, submit, threshold=threshold)}
    return {
        name: [_short(found[name].value), _short(found[name].low), _short(found[name].high)] for name in SHOWN
    }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _known(source: Any) -> pl.DataFrame:
    log: pl.DataFrame = pl.concat(batch.jobs for batch in source.batches())
    return log.with_columns(
        known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.coalesce("known_at", pl.col("end") + LAG))
    )
