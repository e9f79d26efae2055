"""Trace windows of the demo cluster's jobs: small and seeded by the job; some are unusual."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import WINDOWS, key_text

__all__ = ["LENGTH", "STRIDE", "demo_windows"]

LENGTH, STRIDE = 20, 10
_FIRST = 6
"""Windows after the start, for one job in four."""
_AROUND = 6
"""Windows before and after a moment, for jobs that run then."""
_BAD_BEFORE = 45
"""Seconds before a moment from which every second running job waits for I/O instead of computing."""

Floats = NDArray[np.float32]


def demo_windows(log: pl.DataFrame, *, moments: Sequence[int]) -> pl.DataFrame:
    """Windows (`core.frames.WINDOWS`) of jobs of a log: some at their start, and those that run at these moments.

    Odd tasks of arrays have none, as if their nodes were not recorded.
    """
    jobs = (
        log.filter(pl.col("start").is_not_null() & pl.col("node_list").is_not_null())
        .filter((pl.col("task") % 2 == 0).fill_null(True))
        .with_columns(key_text())
        .sort("start", "job")
    )
    parts = [
        _windows_of(row, _ends(row["start"], row["end"], row["start"] + LENGTH, 0, _FIRST))
        for row in jobs.filter(pl.col("job_id") % 4 == 0).iter_rows(named=True)
    ]
    for moment in moments:
        alive = (pl.col("start") <= moment) & (pl.col("end") > moment).fill_null(True)
        for number, row in enumerate(jobs.filter(alive).iter_rows(named=True)):
            ends = _ends(row["start"], row["end"], moment, _AROUND, _AROUND)
            parts.append(_windows_of(row, ends, moment - _BAD_BEFORE if number % 2 else None))
    return (
        pl.concat(parts).unique(["job", "cpu", "at"], keep="last").sort("at", "job", "cpu", nulls_last=True)
    )


def _ends(start: int, end: int | None, near: int, before: int, after: int) -> list[int]:
    """Ends of windows around an instant that are entirely within a job's life."""
    first = -(-near // STRIDE) * STRIDE
    ends = range(first - before * STRIDE, first + after * STRIDE, STRIDE)
    return [each for each in ends if each >= start + LENGTH and (end is None or each <= end)]


def _windows_of(row: dict[str, Any], ends: list[int], bad_from: int | None = None) -> pl.DataFrame:
    usual = 0.95 - zlib.crc32(row["name"].encode()) % 30 / 100
    node = row["node_list"].partition(",")[0].replace("[", "").partition("-")[0]
    rows: list[tuple[str, str, int | None, int, int, list[float]]] = []
    for each in ends:
        seed = np.random.default_rng((zlib.crc32(row["job"].encode()), each))
        cpus, counters = _values(seed, usual, bad_from is not None and each >= bad_from)
        rows += [(row["job"], node, cpu, each, 0, values.ravel().tolist()) for cpu, values in enumerate(cpus)]
        rows.append((row["job"], node, None, each, 0, counters.ravel().tolist()))
    return pl.DataFrame(rows, schema=WINDOWS, orient="row")


def _values(seed: np.random.Generator, user: float, waits: bool) -> tuple[list[Floats], Floats]:
    """Shares of two CPUs, and the counters of their job; a source without GPUs has none of those."""
    cpus = []
    for _ in range(2):
        noise = seed.uniform(0.0, 0.02, (LENGTH, len(CPU_CHANNELS)))
        level = (0.05, 0.1, 0.75) if waits else (user, 0.03, 0.0)
        cpus.append((np.asarray(level) + noise).astype(np.float32))
    counters = np.full((LENGTH, len(JOB_CHANNELS)), np.nan, np.float32)
    used = {"cpu_user": 0.1 if waits else 2 * user, "memory": 2e9, "io_written": 3e8 if waits else 1e5}
    for name, value in used.items():
        counters[:, JOB_CHANNELS.index(name)] = value * seed.uniform(0.95, 1.05, LENGTH)
    return cpus, counters
