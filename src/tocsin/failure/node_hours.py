"""The use of the machine by jobs in node-hours, or in CPU-hours if a log has no nodes."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["hours_unit", "node_hours"]


def hours_unit(jobs: pl.DataFrame) -> str:
    """The unit in which `node_hours` counts these jobs."""
    return "node-hours" if _has_nodes(jobs) else "CPU-hours"


def node_hours(jobs: pl.DataFrame) -> NDArray[np.float64]:
    """Each job's use of the machine."""
    width = "nodes" if _has_nodes(jobs) else "cpus"
    count = pl.coalesce(f"alloc_{width}", f"req_{width}", pl.lit(1))
    hours = jobs.select((pl.col("elapsed").fill_null(0).clip(0) * count / 3600).cast(pl.Float64)).to_series()
    return hours.to_numpy()


def _has_nodes(jobs: pl.DataFrame) -> bool:
    """Archives often record processors only."""
    return bool(jobs["alloc_nodes"].count() or jobs["req_nodes"].count())
