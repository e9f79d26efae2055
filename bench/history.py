"""History features: vectorized against a loop over rows, and the time per job with up to two million jobs."""

import os
import resource
import time
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.sources.swf import SwfFile
from tocsin.store.jobs import LAG

__all__ = ["run"]

SIZES = (250_000, 500_000, 1_000_000, 2_000_000)


def run(folder: Path | None = None) -> dict[str, Any]:
    """All of SDSC-BLUE both ways, compared row by row; then growing numbers of copies of the log."""
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    log = pl.concat(
        batch.jobs for batch in SwfFile(folder / "swf" / "SDSC-BLUE-2000-4.2-cln.swf.gz").batches()
    )
    log = log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + LAG))
    start = time.perf_counter()
    at_once = Replay(log).features(log, stage=Stage.SUBMIT)
    seconds = time.perf_counter() - start
    ledger = Ledger()
    start = time.perf_counter()
    ledger.learn(log)
    one_by_one = ledger.features(log, stage=Stage.SUBMIT)
    row_seconds = time.perf_counter() - start
    equal = all(at_once[name].eq_missing(one_by_one[name]).all() for name in at_once.columns)
    return {
        "jobs": log.height,
        "features": at_once.width,
        "equal_row_by_row": equal,
        "seconds": round(seconds, 2),
        "row_loop_seconds": round(row_seconds, 2),
        "times_faster": round(row_seconds / seconds, 1),
        "growth": [_grown(log, size) for size in SIZES],
    }


def _grown(log: pl.DataFrame, size: int) -> dict[str, Any]:
    """Copies of the log one after another in time; every second copy has new users."""
    span = int(log["known_at"].max() or 0) - int(log["submit"].min() or 0) + 1  # type: ignore[arg-type]  # whole numbers
    copies = []
    for number in range(-(-size // log.height)):
        times = [
            (pl.col(name) + number * span).alias(name) for name in ("submit", "start", "end", "known_at")
        ]
        copies.append(log.with_columns(*times, pl.format("{}-{}", "user", pl.lit(number // 2)).alias("user")))
    many = pl.concat(copies).head(size)
    start = time.perf_counter()
    Replay(many).features(many, stage=Stage.SUBMIT)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {
        "jobs": size,
        "seconds": round(seconds, 2),
        "microseconds_a_job": round(seconds / size * 1e6, 1),
        "peak_mib": peak,
    }
