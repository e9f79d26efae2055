"""Trace windows as a Known provides them: those of some jobs and of their array siblings, up to an instant."""

import polars as pl

from tocsin.core.frames import key_text

__all__ = ["KnownWindows"]

_ARRAY = r"^(.*)_\d+@"
"""The cluster and job id of an array's task; requeued tasks have other submit instants."""


SAME_AGE = 60
"""Seconds by which the age of a sibling's window may differ."""


class KnownWindows:
    """Windows in a frame (`core.frames.WINDOWS`), as `windows` of a Replay or a Ledger.

    `jobs` has the starts of all jobs with windows. The age of a window is its job's age when it ended.
    """

    def __init__(self, frame: pl.DataFrame, jobs: pl.DataFrame) -> None:
        starts = jobs.select(key_text(), "start").unique("job")
        self._frame = (
            frame.join(starts, on="job", how="left", maintain_order="left")
            .with_columns(age=pl.col("at") - pl.col("start"), array=pl.col("job").str.extract(_ARRAY))
            .drop("start")
        )

    def __call__(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        asked = jobs.select(key_text(), age=until - pl.col("start")).with_columns(
            array=pl.col("job").str.extract(_ARRAY)
        )
        known = self._frame.filter(pl.col("at") <= until).with_row_index("row")
        own = known.filter(pl.col("job").is_in(asked["job"].implode()))
        alike = (pl.col("age") - pl.col("age_right")).abs() <= SAME_AGE
        siblings = known.join(asked.drop("job").drop_nulls(), on="array").filter(alike)
        found = pl.concat([own, siblings.select(own.columns)]).unique("row").sort("row")
        return found.drop("row", "age", "array")
