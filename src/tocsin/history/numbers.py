"""Statistics of the past as an array: what a model reads, without a frame."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Known
from tocsin.core.stages import Stage

__all__ = ["Numbers", "numbers_of"]


@dataclass(frozen=True, slots=True)
class Numbers:
    """A row per job, a column per name; NaN if unknown."""

    names: Sequence[str]
    values: NDArray[Any]

    @classmethod
    def of(cls, features: "pl.DataFrame | Numbers") -> "Numbers":
        """The numbers of a frame, with null as NaN."""
        if isinstance(features, Numbers):
            return features
        if features.height != 1 or not features.width:
            return cls(features.columns, features.to_numpy())
        # One row is read here: polars would pass it to its threads, which take milliseconds to answer on a busy machine.
        single = features.to_series(0).dtype == pl.Float32
        return cls(features.columns, np.array([features.row(0)], np.float32 if single else np.float64))

    def column(self, name: str) -> NDArray[Any]:
        return self.values[:, self.names.index(name)]

    def rows(
        self, numbers: Sequence[int] | None = None, names: Sequence[str] | None = None
    ) -> list[dict[str, float | None]]:
        """The rows of all jobs or of these indices, with all columns or some by name; None if unknown."""
        values = self.values if numbers is None else self.values[numbers]
        if names is not None:
            places = {name: place for place, name in enumerate(self.names)}
            values = values[:, [places[name] for name in names]]
        names = self.names if names is None else names
        return [
            {name: None if value != value else value for name, value in zip(names, row, strict=True)}
            for row in values.tolist()
        ]


def numbers_of(known: Known, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str]) -> Numbers:
    """The same as `known.features`. For one job, a live history counts them faster than a frame can be built."""
    numbers = getattr(known, "numbers", None)
    if numbers is not None:
        return Numbers(names, numbers(jobs, stage=stage, names=names))
    return Numbers.of(known.features(jobs, stage=stage, names=names))
