"""Uninterrupted series of one job on one CPU, cut from samples."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS
from tocsin.traces.job_types import IDLE

__all__ = ["Series", "series_of"]

_LONGEST_GAP = 5  # seconds without a sample; after more, a new series begins


@dataclass(frozen=True, slots=True)
class Series:
    """The activity of one CPU while it had one job: seconds × CPU_CHANNELS, without gaps."""

    kind: str
    group: str
    """The job on that node; CPUs of one group are not independent of each other."""
    values: NDArray[np.float64]


def series_of(samples: pl.DataFrame) -> Iterator[Series]:
    """From a frame of CPU_SAMPLES with the column `kind`; rows without a kind are left out.

    A second without a sample repeats the last one, as in windows.
    """
    rows = (
        samples.filter(pl.col("kind").is_not_null())
        .unique(["node", "cpu", "at"], keep="last")
        .sort("node", "cpu", "at")
    )
    if rows.is_empty():
        return
    changed = pl.any_horizontal(
        pl.col(name).ne_missing(pl.col(name).shift()) for name in ("node", "cpu", "job", "kind")
    )
    step = pl.col("at").diff()
    begins = rows.select(changed | (step > _LONGEST_GAP).fill_null(True)).to_series().to_numpy()
    firsts = np.flatnonzero(begins)
    values = rows.select(CPU_CHANNELS).to_numpy().astype(np.float64)
    at, kinds = rows["at"].to_numpy(), rows["kind"]
    groups = rows.select(pl.format("{}/{}", "node", pl.col("job").fill_null(IDLE))).to_series()
    for first, end in zip(firsts, [*firsts[1:], len(values)], strict=True):
        lasts = np.diff(at[first:end], append=at[end - 1] + 1)  # seconds until the next sample
        yield Series(kinds[int(first)], groups[int(first)], np.repeat(values[first:end], lasts, axis=0))
