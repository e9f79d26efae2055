"""The daily cost of execution-time classification as a share of one core (RoWD, section 5.2, runtime overhead)."""

import time
from typing import Any

import numpy as np
import polars as pl

from bench.flowbench import LAG
from tocsin.core.frames import conform
from tocsin.workload.execution.models import FittedExecution
from tocsin.workload.execution.training import train_execution

__all__ = ["overhead"]


def overhead(daily: int) -> dict[str, Any]:
    """Train once on five days with `daily` jobs each, then classify one day."""
    jobs, flags = _fugaku_like(5 * daily)
    now = int(jobs["known_at"].max())  # type: ignore[arg-type]  # an instant
    began = time.process_time()
    model = train_execution(jobs, {"ai": flags}, now=now)
    train = time.process_time() - began
    began = time.process_time()
    model.screen(jobs[-daily:])
    screen = time.process_time() - began
    alone = _one_by_one(model, jobs[-200:])
    return {
        "jobs_a_day": daily,
        "train_seconds": round(train, 4),
        "screen_seconds": round(screen, 4),
        "one_job_milliseconds": round(alone * 1000, 3),
        "share_of_one_core": round((train + screen) / 86400, 6),
        "share_of_one_core_one_by_one": round((train + daily * alone) / 86400, 6),
    }


def _one_by_one(model: FittedExecution, jobs: pl.DataFrame) -> float:
    seconds = []
    for row in range(jobs.height):
        began = time.perf_counter()
        model.screen(jobs[row])
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def _fugaku_like(rows: int, seed: int = 0) -> tuple[pl.DataFrame, pl.Series]:
    """Jobs over five days with the paper's nine features; 3 % are AI jobs, with more power and less memory bandwidth."""
    random = np.random.default_rng(seed)
    ai = random.random(rows) < 0.03
    nodes = 2 ** random.integers(0, 8, rows)
    elapsed = random.lognormal(7, 1.5, rows).clip(10, 80_000).astype(np.int64)
    watts = nodes * random.normal(np.where(ai, 150, 110), 20).clip(40)
    end = np.sort(1_700_000_000 + random.integers(0, 5 * 86400, rows))
    frame = pl.DataFrame(
        {
            "cluster": "bench", "job_id": np.arange(rows), "submit": end - elapsed - 180, "start": end - elapsed,
            "end": end, "known_at": end + LAG, "elapsed": elapsed, "time_limit": elapsed * 2,
            "alloc_nodes": nodes, "alloc_cpus": nodes * 48, "power": watts, "energy": watts * elapsed,
            "idle_seconds": elapsed * random.beta(2, 8, rows), "flops": nodes * random.lognormal(24, 1, rows),
            "memory_bandwidth": nodes * random.lognormal(np.where(ai, 23, 24), 1),
        }
    )  # fmt: skip
    # One label in fifty is wrong: with clean labels the trees would stay small and training would look too cheap.
    return conform(frame), pl.Series(ai ^ (random.random(rows) < 0.02))
