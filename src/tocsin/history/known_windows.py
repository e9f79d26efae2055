"""Windows of traces as a Known gives them: those of some jobs and of their array siblings, up to an instant."""

import polars as pl

from tocsin.core.frames import key_text

__all__ = ["KnownWindows"]

_ARRAY = r"^(.*)_\d+@"
"""The cluster and job id of an array's task: tasks that were requeued have other submit instants."""


class KnownWindows:
    """Windows in a frame (`core.frames.WINDOWS`), as `windows` of a Replay or a Ledger."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame.with_columns(array=pl.col("job").str.extract(_ARRAY))

    def __call__(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        keys = jobs.select(key_text()).to_series()
        arrays = keys.str.extract(_ARRAY).drop_nulls()
        mine = pl.col("job").is_in(keys.implode()) | pl.col("array").is_in(arrays.implode())
        return self._frame.filter(mine & (pl.col("at") <= until)).drop("array")
