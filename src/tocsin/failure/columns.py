"""The columns of a model: the declared features that a training kept, and the codes that it fitted."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.failure.feature_table import FeatureTable
from tocsin.failure.features import CODED, FEATURES, known_at_stage
from tocsin.history.numbers import Numbers
from tocsin.models.engines import Matrix
from tocsin.models.splits import DAY

__all__ = ["Columns"]

_MOST_CODES = 1000  # categories beyond these are as rare as an unseen one


@dataclass(frozen=True, slots=True)
class Columns:
    """Fitted in a training, and the same for every prediction after it."""

    stage: Stage
    zone: str
    names: tuple[str, ...]
    codes: Mapping[str, Mapping[str, float]]
    """For each coded field, the share of training jobs by value; unseen values have none."""
    dropped: Mapping[str, int]
    """How many features were left out, by reason."""
    _table: FeatureTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_table", FeatureTable(self.names, zone=self.zone, codes=self.codes))

    @property
    def reads(self) -> tuple[str, ...]:
        """The statistics of history that the features are computed from."""
        return self._table.reads

    @classmethod
    def fit(
        cls,
        jobs: pl.DataFrame,
        history: pl.DataFrame,
        *,
        stage: Stage,
        zone: str,
        settled: tuple[str, ...] | None = None,
    ) -> tuple["Columns", Matrix]:
        """Choose the columns unless they are settled, and return the training matrix."""
        codes = {name: _shares(jobs[name]) for name in CODED}
        if settled is not None:
            columns = cls(stage, zone, settled, codes, {})
            return columns, columns.matrix(jobs, history)
        submit = jobs["submit"].to_numpy()
        names = known_at_stage(stage, (int(submit.max()) - int(submit.min())) / DAY)
        wide = FeatureTable(names, zone=zone, codes=codes).values(jobs, history)
        kept: list[int] = []
        seen: dict[bytes, list[int]] = {}
        dropped = {"the same for all jobs": 0, "equal to another one": 0}
        for place in range(len(names)):
            values = wide[:, place]
            if _constant(values):
                dropped["the same for all jobs"] += 1
                continue
            alike = seen.setdefault(values[:: max(1, len(values) // 256)].tobytes(), [])
            if any(np.array_equal(values, wide[:, other], equal_nan=True) for other in alike):
                dropped["equal to another one"] += 1
                continue
            alike.append(place)
            kept.append(place)
        if not kept:
            raise ModelError(
                "no feature separates the jobs of the training; use a log with requests and users"
            )
        columns = cls(stage, zone, tuple(names[place] for place in kept), codes, dropped)
        return columns, np.ascontiguousarray(wide[:, kept])

    def only(self, names: tuple[str, ...]) -> "Columns":
        """Only these columns."""
        return replace(self, names=names)

    def matrix(self, jobs: pl.DataFrame, history: pl.DataFrame | Numbers) -> Matrix:
        """The rows of these jobs; `history` holds their `history_features` at the stage."""
        return np.ascontiguousarray(self._table.values(jobs, history))

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": str(self.stage),
            "zone": self.zone,
            "names": list(self.names),
            "codes": {name: dict(codes) for name, codes in self.codes.items()},
            "dropped": dict(self.dropped),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Columns":
        """What `to_json` wrote; a feature unknown to this version is refused."""
        names = tuple(document["names"])
        unknown = [name for name in names if name not in FEATURES]
        if unknown:
            raise ModelError(
                f'the model has the feature "{str(unknown[0])[:80]}", which this version does not know; train again'
            )
        codes = {
            name: {str(value): float(share) for value, share in document["codes"][name].items()}
            for name in CODED
        }
        return cls(Stage(document["stage"]), str(document["zone"]), names, codes, dict(document["dropped"]))


def _shares(values: pl.Series) -> dict[str, float]:
    counts = (
        values.drop_nulls()
        .cast(pl.String)
        .value_counts(name="count")
        .sort(["count", values.name], descending=[True, False])
    )
    return {value: round(count / len(values), 6) for value, count in counts.head(_MOST_CODES).rows()}


def _constant(values: Matrix) -> bool:
    gaps = np.isnan(values)
    if gaps.all():
        return True
    first = values[~gaps][0]
    return not gaps.any() and bool((values == first).all())
