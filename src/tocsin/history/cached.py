"""A Known that computes the features of many jobs once and returns them for any of these jobs."""

from collections.abc import Sequence

import polars as pl

from tocsin.core.detector import Known
from tocsin.core.fields import KEY
from tocsin.core.stages import Stage

__all__ = ["CachedKnown"]


class CachedKnown:
    """The features of `jobs` at one stage, cached. Other questions go to `known`."""

    def __init__(self, known: Known, jobs: pl.DataFrame, *, stage: Stage) -> None:
        self.machine = known.machine
        self.now = known.now
        self._known = known
        self._stage = stage
        self._features = known.features(jobs, stage=stage)
        self._places = jobs.select(KEY).with_row_index("place").unique(list(KEY), keep="first")

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        places = jobs.select(KEY).join(
            self._places, on=list(KEY), how="left", nulls_equal=True, maintain_order="left"
        )["place"]
        if stage is not self._stage or places.has_nulls():
            return self._known.features(jobs, stage=stage, names=names)
        return (self._features if names is None else self._features.select(names))[places]

    def node_outcomes(self, asked: pl.DataFrame) -> pl.DataFrame:
        return self._known.node_outcomes(asked)

    def script(self, digest: str) -> str | None:
        return self._known.script(digest)

    def windows(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        return self._known.windows(jobs, until)
