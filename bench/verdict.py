"""What a verdict on failure costs: for one job, warm, with explanation or without; and for a whole log at once."""

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.detector import Budget
from tocsin.core.stages import Stage
from tocsin.failure.detector import DETECTOR
from tocsin.failure.fitted import FittedFailure
from tocsin.history.cached import CachedKnown
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.judge.check_data import CheckData, demo_check_data
from tocsin.sources.swf import SwfFile

__all__ = ["run"]

LOG = "KTH-SP2-1996-2.1-cln"
WARM, ASKED, ROUNDS = 50, 400, 3


def run(folder: Path | None = None) -> dict[str, Any]:
    """A model of the first three quarters of KTH-SP2 and one of the demo cluster (which names partitions, scripts, memory)."""
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    log = pl.concat(batch.jobs for batch in SwfFile(folder / "swf" / f"{LOG}.swf.gz").batches())
    archive, demo = CheckData(log), demo_check_data()
    model = _model(archive)
    return {
        "stage": str(Stage.SUBMIT),
        "one_job": {LOG: _one_by_one(archive, model), "demo": _one_by_one(demo, _model(demo))},
        "batch": _at_once(archive.log, model),
    }


def _model(check_data: CheckData) -> FittedFailure:
    return DETECTOR.fit(
        check_data.ended(), check_data.known(), stage=Stage.SUBMIT, seed=0, budget=Budget(trials=2)
    )


def _one_by_one(check_data: CheckData, model: FittedFailure) -> dict[str, Any]:
    """Each of the next jobs in turn, from a ledger that is kept up to date as in service."""
    later = check_data.log.filter(pl.col("submit") > check_data.cut).sort("submit").head(ASKED)

    def milliseconds(ask: Callable[[pl.DataFrame, Ledger], object]) -> dict[str, float]:
        ledger = Ledger(machine=check_data.machine, scripts=check_data.scripts.get)
        ledger.learn(check_data.log)
        ledger.advance(check_data.cut)
        taken = []
        for row in range(later.height):
            job = later[row]
            ledger.advance(
                job["submit"][0] - 1
            )  # what others sent or ended in between is not this job's cost
            start = time.perf_counter()
            ask(job, ledger)
            taken.append((time.perf_counter() - start) * 1000)
        cuts = statistics.quantiles(taken[WARM:], n=20)
        return {"median_ms": round(cuts[9], 2), "p95_ms": round(cuts[18], 2)}

    return {
        "features": len(model.columns.names),
        "assess": milliseconds(lambda job, past: model.assess(job, past, stage=Stage.SUBMIT)),
        "explain": milliseconds(lambda job, past: model.explain(job, past, stage=Stage.SUBMIT)),
    }


def _at_once(log: pl.DataFrame, model: FittedFailure) -> dict[str, Any]:
    """The best of a few rounds: scores alone, with the history of the log told in the same breath, and whole verdicts."""
    replay = Replay(log)
    told = CachedKnown(replay, log, stage=Stage.SUBMIT)
    history = told.features(log, stage=Stage.SUBMIT)

    def rate(score: Callable[[], object]) -> int:
        taken = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            score()
            taken.append(time.perf_counter() - start)
        return round(log.height / min(taken))

    def replayed() -> pl.DataFrame:
        return replay.features(log, stage=Stage.SUBMIT, names=model.columns.reads)

    return {
        "jobs": log.height,
        "scores_per_second": rate(lambda: model.probabilities(log, history)),
        "scores_with_history_per_second": rate(lambda: model.probabilities(log, replayed())),
        "verdicts_per_second": rate(lambda: model.assess(log, told, stage=Stage.SUBMIT)),
        "verdicts_with_history_per_second": rate(lambda: model.assess(log, replay, stage=Stage.SUBMIT)),
    }
