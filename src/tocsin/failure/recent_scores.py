"""Scores that models in use gave to the jobs of the last weeks, before their outcomes were known."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.failure.score_table import read_table
from tocsin.models.engines import Floats
from tocsin.models.splits import DAY

__all__ = ["RecentScores"]

WEEKS = 4
_WEEK = 7 * DAY
_MOST = 100_000
_COLUMNS: dict[str, type[pl.DataType]] = {
    "own": pl.Float64, "others": pl.Float64, "failed": pl.Float64, "submit": pl.Int64, "known_at": pl.Int64
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RecentScores:
    """Scores by own models and by other clusters' experience; one row for each job."""

    own: Floats
    others: Floats
    failed: Floats
    submit: NDArray[np.int64]
    known_at: NDArray[np.int64]

    @property
    def known_until(self) -> int:
        return int(self.known_at.max())

    def followed_by(self, later: "RecentScores") -> "RecentScores":
        """Combined with scores of outcomes that became known later."""
        return RecentScores(
            *(np.concatenate([getattr(self, name), getattr(later, name)]) for name in _COLUMNS)
        )

    def latest(self) -> "RecentScores":
        """Without scores that are too old to count."""
        rows = np.sort(np.argsort(self.known_at, kind="stable")[-_MOST:])
        rows = rows[self.known_at[rows] > self.known_until - WEEKS * _WEEK]
        return RecentScores(*(getattr(self, name)[rows] for name in _COLUMNS))

    def known_by(self, instant: int) -> "RecentScores | None":
        """Those of outcomes that were known by then; None if there are none."""
        rows = self.known_at <= instant
        if not rows.any():
            return None
        return RecentScores(*(getattr(self, name)[rows] for name in _COLUMNS))

    def weeks(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Own scores, others' scores and outcomes of each of the last weeks, the last one first."""
        age = (self.known_until - self.submit) // _WEEK
        for week in range(WEEKS):
            rows = age == week
            yield self.own[rows], self.others[rows], self.failed[rows]

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({name: getattr(self, name) for name in _COLUMNS}, schema=_COLUMNS)

    @classmethod
    def read(cls, path: Path) -> "RecentScores":
        """Read the table that `frame` made."""
        table = read_table(path, _COLUMNS)
        if not table.height or not all(table[name].is_finite().fill_null(False).all() for name in _COLUMNS):
            raise ModelError(f"{path} has no rows, or rows with gaps; train again")
        return cls(*(table[name].to_numpy() for name in _COLUMNS))
