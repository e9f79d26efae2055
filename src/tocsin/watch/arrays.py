"""Records of arrays whose tasks had all started before the array was seen; tasks inherit its verdict."""

from collections.abc import Sequence

import polars as pl

from tocsin.core.fields import Part, fields_of
from tocsin.core.frames import conform

__all__ = ["fold_tasks", "missing_arrays"]

_REQUEST = [name for name in fields_of(Part.REQUEST) if name not in ("raw_id", "array", "array_tasks")]
_SAME_ID = (
    90 * 86400
)  # seconds within which a record with this id is the same array; ids are reused after years


def missing_arrays(tasks: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """One record, as submitted, for each array that has tasks here and is not among the `known` (job_id, submit).

    A requeued task has a later submit instant and still belongs to its array.
    """
    if tasks.is_empty():
        return conform(tasks)
    found = (
        tasks.sort("submit", "task")
        .group_by("cluster", "job_id", maintain_order=True)
        .agg(
            pl.col("submit").first(),
            pl.col("task").alias("tasks"),
            *(pl.col(name).drop_nulls().first() for name in _REQUEST),
            pl.col("source", "request_final").first(),
        )
    )
    near = (
        found.select("job_id", "submit")
        .join(known.select("job_id", pl.col("submit").alias("own")), on="job_id")
        .filter(pl.col("own").is_between(pl.col("submit") - _SAME_ID, pl.col("submit")))
    )
    lost = found.join(near, on="job_id", how="anti")
    return conform(
        lost.with_columns(
            pl.lit(None, pl.Int64).alias("task"),
            pl.col("tasks").map_elements(fold_tasks, return_dtype=pl.String).alias("array"),
            pl.col("tasks").list.n_unique().cast(pl.Int64).alias("array_tasks"),
            pl.lit("PENDING").alias("state"),
        )
    )


def fold_tasks(tasks: Sequence[int]) -> str:
    """
    >>> fold_tasks([1, 2, 3, 7, 9, 8])
    '1-3,7-9'
    """
    ranges: list[list[int]] = []
    for task in sorted(set(tasks)):
        if ranges and task == ranges[-1][1] + 1:
            ranges[-1][1] = task
        else:
            ranges.append([task, task])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
