"""Windows of CPUs that compute, with as much noise as wanted, and some that do something else."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tests.kits.watching import NOON, frame
from tocsin.core.frames import WINDOWS

LENGTH, STRIDE = 20, 10
COMPUTES, WAITS = (0.9, 0.05, 0.0), (0.1, 0.05, 0.8)


def jobs(*rows: dict[str, Any]) -> pl.DataFrame:
    """Running jobs of ann; each row names at least a job_id."""
    plain = {"state": "RUNNING", "start": NOON, "node_list": "n1", "name": "fit"}
    return frame(*({**plain, **row} for row in rows))


def windows(
    job: int | str,
    ends: Sequence[int],
    *,
    level: Sequence[float] = COMPUTES,
    cpus: Sequence[int] = (0,),
    node: str = "n1",
    noise: float = 0.02,
    seed: int = 0,
) -> pl.DataFrame:
    """Windows that end at these seconds after noon."""
    random = np.random.default_rng((seed, *str(job).encode()))
    rows = []
    for end in ends:
        for cpu in cpus:
            shape = (LENGTH, len(level))
            values = np.clip(np.asarray(level) + random.normal(0, noise, shape), 0, 1)
            values /= np.maximum(1, values.sum(axis=1, keepdims=True))
            rows.append((f"lab:{job}@{NOON}", node, cpu, NOON + end, 0, values.ravel().tolist()))
    return pl.DataFrame(rows, schema=WINDOWS, orient="row")


def every(first: int, last: int) -> range:
    """The ends of windows in between, both included."""
    return range(first, last + 1, STRIDE)
