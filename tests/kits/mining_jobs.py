"""Ended jobs with their power draw, some of them mining."""

import numpy as np
import polars as pl

from tocsin.core.frames import conform

__all__ = ["NOW", "mining_jobs"]

NOW = 1_790_000_000


def mining_jobs(rows: int = 800, days: float = 5.0, seed: int = 1) -> tuple[pl.DataFrame, pl.Series]:
    """Jobs that ended one after another until NOW; one in five mines and draws 300 W per node, not 150."""
    random = np.random.default_rng(seed)
    mining = random.random(rows) < 0.2
    nodes = random.integers(1, 5, rows)
    elapsed = random.integers(100, 9000, rows)
    watts = nodes * random.normal(np.where(mining, 300.0, 150.0), 25.0)
    end = NOW - 60 - np.sort(random.integers(0, int(days * 86400) - 200, rows))[::-1]
    jobs = pl.DataFrame(
        {
            "cluster": "lab",
            "job_id": np.arange(rows),
            "user": [f"user{number % 7}" for number in range(rows)],
            "uid": np.where(
                mining, 4711, 1000
            ),  # a model that looked at people would be right for a wrong reason
            "submit": end - elapsed - 30,
            "start": end - elapsed,
            "end": end,
            "known_at": end + 60,
            "elapsed": elapsed,
            "time_limit": 10_000,
            "alloc_nodes": nodes,
            "alloc_cpus": nodes * 48,
            "req_nodes": nodes,
            "power": watts,
            "energy": watts * elapsed,
            "exit_code": 0,
        }
    )
    return conform(jobs), pl.Series(mining)
