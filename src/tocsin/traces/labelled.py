"""Labelled windows: the windows of a campaign, with the job type of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.frames import WINDOWS
from tocsin.traces.campaigns import Campaign
from tocsin.traces.cutting import cut
from tocsin.traces.job_types import IDLE
from tocsin.traces.windows import Windows

__all__ = ["LabelledWindows", "labelled_windows"]


@dataclass(frozen=True, slots=True)
class LabelledWindows:
    """Windows, their labels, and whether they belong to a normal job. CPUs without a job are `idle`."""

    windows: Windows
    label: NDArray[np.str_]
    normal: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    """Whether all of its seconds belong to that job: a tenth of a window may belong to another one."""

    def __len__(self) -> int:
        return len(self.windows)

    def __getitem__(self, rows: "slice | NDArray[Any]") -> Self:
        """Some of them, by a slice, a mask or numbers."""
        return type(self)(self.windows[rows], self.label[rows], self.normal[rows], self.whole[rows])


def labelled_windows(
    campaign: Campaign, *, length: int = 100, stride: int = 10, channels: Sequence[str] = CPU_CHANNELS
) -> LabelledWindows:
    """The windows of CPUs, or with JOB_CHANNELS those of jobs; without those outside the campaign's jobs."""
    of_jobs = channels == JOB_CHANNELS
    frame = cut(
        campaign.cpus.clear() if of_jobs else campaign.cpus,
        campaign.jobs if of_jobs else None,
        length=length,
        stride=stride,
    )
    jobs = campaign.card.jobs
    labels = campaign.labels.with_columns(
        raw=pl.Series([each.job for each in jobs], dtype=pl.String),
        start=pl.Series([each.start for each in jobs], dtype=pl.Int64),
        end=pl.Series([each.end for each in jobs], dtype=pl.Int64),
    )
    busy = campaign.cpus.drop_nulls("job").select("node", "cpu", busy="at").sort("busy")
    frame = frame.with_row_index("row").sort("at").join_asof(
        busy, left_on="at", right_on="busy", by=["node", "cpu"], check_sortedness=False
    ).sort("row")  # fmt: skip
    known = frame.join(
        labels.rename({"job": "key"}), left_on="job", right_on="raw", how="left", maintain_order="left"
    ).with_columns(
        label=pl.when(pl.col("job").is_null()).then(pl.lit(IDLE)).otherwise("label"),
        normal=pl.col("job").is_null() | pl.col("normal"),
        whole=(pl.col("at") - length >= pl.coalesce("start", "busy"))
        & (pl.col("at") <= pl.coalesce("end", "at")),
    )
    known = known.drop_nulls("label").with_columns(job=pl.col("key"))
    return LabelledWindows(
        Windows.from_frame(known.select(WINDOWS.names()), channels),
        known["label"].to_numpy().astype(np.str_),
        known["normal"].to_numpy(),
        known["whole"].fill_null(value=True).to_numpy(),
    )
