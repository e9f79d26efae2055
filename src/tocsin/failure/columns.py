"""The columns of a model: which features of the declared ones a training kept, and the codes that it fitted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.failure.features import CODED, FEATURES, feature_table, known_at_stage
from tocsin.models.engines import Matrix
from tocsin.models.splits import DAY

__all__ = ["Columns"]

_MOST_CODES = 1000  # categories beyond these are as rare as one that was never seen


@dataclass(frozen=True, slots=True)
class Columns:
    """Fitted on a training, and the same for every question after it."""

    stage: Stage
    zone: str
    names: tuple[str, ...]
    codes: Mapping[str, Mapping[str, float]]
    """For each coded field the share of the training's jobs by value; what was never seen has none."""
    dropped: Mapping[str, int]
    """How many features were left out, by reason."""

    @classmethod
    def fit(
        cls, jobs: pl.DataFrame, history: pl.DataFrame, *, stage: Stage, zone: str
    ) -> tuple["Columns", Matrix]:
        """Choose the columns by themselves where fields are missing, and give the training's matrix."""
        codes = {name: _shares(jobs[name]) for name in CODED}
        submit = jobs["submit"].to_numpy()
        names = known_at_stage(stage, (int(submit.max()) - int(submit.min())) / DAY)
        wide = feature_table(jobs, history, _coded(jobs, codes), names, zone=zone)
        kept: list[str] = []
        seen: dict[bytes, list[str]] = {}
        dropped = {"the same for all jobs": 0, "equal to another one": 0}
        for name in names:
            values = wide[name].to_numpy()
            if _constant(values):
                dropped["the same for all jobs"] += 1
                continue
            alike = seen.setdefault(values[:: max(1, len(values) // 256)].tobytes(), [])
            if any(np.array_equal(values, wide[other].to_numpy(), equal_nan=True) for other in alike):
                dropped["equal to another one"] += 1
                continue
            alike.append(name)
            kept.append(name)
        if not kept:
            raise ModelError(
                "no feature tells the jobs of the training apart; read a log with requests and users"
            )
        return cls(stage, zone, tuple(kept), codes, dropped), _matrix(wide.select(kept))

    def matrix(self, jobs: pl.DataFrame, history: pl.DataFrame) -> Matrix:
        """The rows of these jobs; `history` is what `Past.features` tells of them at the stage."""
        return _matrix(feature_table(jobs, history, _coded(jobs, self.codes), self.names, zone=self.zone))

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
        """What `to_json` wrote; a feature that this version does not know is refused."""
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


def _coded(jobs: pl.DataFrame, codes: Mapping[str, Mapping[str, float]]) -> pl.DataFrame:
    return jobs.select(
        pl.col(name)
        .cast(pl.String)
        .replace_strict(list(known), list(known.values()), default=None, return_dtype=pl.Float64)
        .alias(f"common_{name}")
        if known
        else pl.repeat(None, pl.len(), dtype=pl.Float64).alias(f"common_{name}")
        for name, known in codes.items()
    )


def _constant(values: Matrix) -> bool:
    gaps = np.isnan(values)
    if gaps.all():
        return True
    first = values[~gaps][0]
    return not gaps.any() and bool((values == first).all())


def _matrix(frame: pl.DataFrame) -> Matrix:
    return np.ascontiguousarray(frame.to_numpy().astype(np.float32, copy=False))
