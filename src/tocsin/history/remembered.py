"""A past that was asked once for many jobs and answers again for any of them: for walks through a log."""

from collections.abc import Sequence

import polars as pl

from tocsin.core.detector import Known
from tocsin.core.fields import KEY
from tocsin.core.stages import Stage

__all__ = ["Remembered"]


class Remembered:
    """What the past tells of `jobs` at one stage; each row is as of the job's own moment, whoever asks and when."""

    def __init__(self, past: Known, jobs: pl.DataFrame, *, stage: Stage) -> None:
        self.machine = past.machine
        self._past = past
        self._stage = stage
        self._told = past.features(jobs, stage=stage)
        self._places = jobs.select(KEY).with_row_index("place").unique(list(KEY), keep="first")

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        places = jobs.select(KEY).join(
            self._places, on=list(KEY), how="left", nulls_equal=True, maintain_order="left"
        )["place"]
        if stage is not self._stage or places.has_nulls():
            return self._past.features(jobs, stage=stage, names=names)
        return (self._told if names is None else self._told.select(names))[places]

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        return self._past.node_outcomes(asked)

    def script(self, digest: str) -> str | None:
        return self._past.script(digest)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self._past.windows(jobs, until)
