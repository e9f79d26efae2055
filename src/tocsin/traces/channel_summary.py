"""In which channels a job type is visible: mean and spread of each channel by label."""

from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.traces.campaigns import CPUS, JOBS, Card
from tocsin.traces.job_types import IDLE

__all__ = ["channel_summary"]


def channel_summary(folder: Path, card: Card) -> list[dict[str, Any]]:
    """A row for each label and channel: mean and standard deviation over seconds. CPUs without a job are `idle`."""
    labels = {each.job: each.label for each in card.jobs}
    rows = []
    for name, channels, absent in ((CPUS, CPU_CHANNELS, IDLE), (JOBS, JOB_CHANNELS, None)):
        label = (
            pl.when(pl.col("job").is_null())
            .then(pl.lit(absent))
            .otherwise(pl.col("job").replace_strict(labels, default=None, return_dtype=pl.String))
        )
        found = (
            pl.scan_parquet(folder / name)
            .group_by(label.alias("label"))
            .agg(
                pl.len().alias("seconds"),
                *(pl.col(each).cast(pl.Float64).mean().alias(f"{each} mean") for each in channels),
                *(pl.col(each).cast(pl.Float64).std().alias(f"{each} std") for each in channels),
            )
            .drop_nulls("label")
            .sort("label")
            .collect(engine="streaming")
        )
        rows += [
            {
                "label": row["label"],
                "channel": each,
                "seconds": row["seconds"],
                "mean": row[f"{each} mean"],
                "std": row[f"{each} std"],
            }
            for row in found.iter_rows(named=True)
            for each in channels
        ]
    return rows
