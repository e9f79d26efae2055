"""Statistics of the past as an array: what a model reads, without the frame around it."""

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
    """A row a job, a column a name; NaN where nothing is known."""

    names: Sequence[str]
    values: NDArray[Any]

    @classmethod
    def of(cls, features: "pl.DataFrame | Numbers") -> "Numbers":
        """The numbers of a frame, where null is NaN."""
        if isinstance(features, Numbers):
            return features
        if features.height != 1 or not features.width:
            return cls(features.columns, features.to_numpy())
        # One row is read here: polars would hand it to its threads, and on a busy machine they take milliseconds to answer.
        single = features.to_series(0).dtype == pl.Float32
        return cls(features.columns, np.array([features.row(0)], np.float32 if single else np.float64))

    def column(self, name: str) -> NDArray[Any]:
        return self.values[:, self.names.index(name)]

    def rows(
        self, numbers: Sequence[int] | None = None, names: Sequence[str] | None = None
    ) -> list[dict[str, float | None]]:
        """Of all jobs or those of these numbers, all or some by name; None where nothing is known."""
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
    """The same as `known.features`. Of one job, a live history counts them in less time than a frame takes to make."""
    numbers = getattr(known, "numbers", None)
    if numbers is not None:
        return Numbers(names, numbers(jobs, stage=stage, names=names))
    return Numbers.of(known.features(jobs, stage=stage, names=names))
