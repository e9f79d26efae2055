"""Sums the usage of steps into their jobs."""

import polars as pl

from tocsin.sources.records import LINE, RECORD

__all__ = ["FOLDED", "ID", "fold_steps"]

ID = "_id"  # column with sacct's JobID without the step

FOLDED = {
    "max_memory": pl.max_horizontal,
    "cpu_seconds": pl.sum_horizontal,
    "user_cpu_seconds": pl.sum_horizontal,
    "system_cpu_seconds": pl.sum_horizontal,
    "read_bytes": pl.sum_horizontal,
    "written_bytes": pl.sum_horizontal,
    "energy": pl.max_horizontal,  # measured per node, so steps on one node share it
    "steps": pl.sum_horizontal,
}
"""Fields summed from steps, and how; in a frame of jobs their columns start with an underscore."""


def fold_steps(jobs: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The jobs with the usage of their steps, and the steps without a job.

    A step belongs to the last record of its job before it; in a sorted file it may come in front.
    """
    if not steps.height:
        return jobs, steps
    owners = jobs.select(LINE, ID, RECORD)
    placed = steps.join_asof(owners, on=LINE, by=ID, strategy="backward", check_sortedness=False)
    lone = placed[RECORD].is_null()
    if lone.any():
        ahead = steps.filter(lone).join_asof(
            owners, on=LINE, by=ID, strategy="forward", check_sortedness=False
        )
        placed = pl.concat([placed.filter(~lone), ahead])
    sums = (
        placed.filter(pl.col(RECORD).is_not_null())
        .group_by(RECORD)
        .agg(
            pl.col(field).max() if how is pl.max_horizontal else _sum(field) for field, how in FOLDED.items()
        )
        .rename({field: f"+{field}" for field in FOLDED})
    )
    folded = jobs.join(sums, on=RECORD, how="left", maintain_order="left").with_columns(
        pl.when(pl.col(f"_{field}").is_not_null() | pl.col(f"+{field}").is_not_null())
        .then(how(f"_{field}", f"+{field}"))
        .alias(f"_{field}")
        for field, how in FOLDED.items()
    )
    return folded.drop([f"+{field}" for field in FOLDED]), placed.filter(pl.col(RECORD).is_null())


def _sum(field: str) -> pl.Expr:
    """Null if no step has a value."""
    return pl.when(pl.col(field).count() > 0).then(pl.col(field).sum())
