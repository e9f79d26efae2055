"""The fields of jobs as numbers, read when a feature needs them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.units import UNLIMITED

__all__ = ["FromFields", "JobFields", "local_time", "share_of"]

Floats = NDArray[np.float64]


class JobFields:
    """One number per job; NaN if the field is null.

    Features are computed from these with numpy: for one job, a polars query takes longer than the rest of a prediction.
    """

    def __init__(self, jobs: pl.DataFrame) -> None:
        self.jobs, self._numbers = jobs, dict[str, Floats]()

    def __getitem__(self, name: str) -> Floats:
        found = self._numbers.get(name)
        if found is None:
            column = self.jobs.get_column(name)
            if len(column) == 1:
                value = column.to_list()[0]
                found = np.array([np.nan if value is None else value], np.float64)
            else:
                found = column.cast(pl.Float64).to_numpy()
            self._numbers[name] = found
        return found

    def named(self, name: str) -> Floats:
        """1 if the field has a value, of any type."""
        column = self.jobs.get_column(name)
        if len(column) == 1:
            return np.array([float(not column.null_count())])
        return column.is_not_null().to_numpy().astype(np.float64)

    def positive(self, name: str) -> Floats:
        """NaN also for 0, which means everything available."""
        values = self[name]
        return np.where(values > 0, values, np.nan)

    def limited(self, name: str) -> Floats:
        """NaN also for UNLIMITED."""
        values = self[name]
        return np.where(values < UNLIMITED, values, np.nan)

    def equal(self, name: str, value: float) -> Floats:
        """Whether the field has this value."""
        values = self[name]
        return np.where(np.isnan(values), np.nan, values == value)


FromFields = Callable[[JobFields], NDArray[Any]]
"""How a feature is computed from the fields of jobs."""


def local_time(part: str, zone: str) -> FromFields:
    """A part of the submission time in this zone."""

    def of_one(submit: int) -> float:
        at = datetime.fromtimestamp(submit, place)
        if part == "hour":
            # In single precision and multiplied, as polars computes it for many.
            return float(np.float32(at.hour) + np.float32(at.minute) * np.float32(1 / 60))
        return float(_PARTS[part](at))

    def of_jobs(fields: JobFields) -> NDArray[Any]:
        jobs = fields.jobs
        if jobs.height == 1:
            return np.array([of_one(jobs.get_column("submit").to_list()[0])])
        return jobs.select(query).to_series().to_numpy()

    place, query = UTC if zone in _UTC else ZoneInfo(zone), _clock(part, zone).cast(pl.Float64)
    return of_jobs


_PARTS: Mapping[str, Callable[[datetime], int]] = {
    "weekday": datetime.isoweekday,
    "week": lambda at: at.isocalendar().week,
    "month": lambda at: at.month,
    "quarter": lambda at: (at.month + 2) // 3,
}
_UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Universal", "Etc/Universal", "Zulu", "Etc/Zulu"})


def _clock(part: str, zone: str) -> pl.Expr:
    utc = pl.from_epoch("submit", time_unit="s").dt
    # The conversion to a zone takes most of the time of all features together.
    local = utc if zone in _UTC else utc.replace_time_zone("UTC").dt.convert_time_zone(zone).dt
    if part == "hour":
        # Multiplied, because polars divides one number differently from many: the last bit would differ.
        return local.hour().cast(pl.Float32) + local.minute().cast(pl.Float32) * (1 / 60)
    parts = {"weekday": local.weekday, "week": local.week, "month": local.month, "quarter": local.quarter}
    return parts[part]()


def share_of(field: str, shares: Mapping[str, float]) -> FromFields:
    """How common the field's value was in the training set; NaN for an unseen value."""

    def of_jobs(fields: JobFields) -> NDArray[Any]:
        values = fields.jobs.get_column(field)
        if len(values) == 1:
            value = values.to_list()[0]
            return np.array([shares.get(str(value), np.nan) if value is not None else np.nan])
        places = values.cast(pl.String).cast(known, strict=False).to_physical().cast(pl.Int64)
        found: NDArray[Any] = by_place[places.fill_null(-1).to_numpy()]
        return found

    known, by_place = pl.Enum(list(shares)), np.array([*shares.values(), np.nan])
    return of_jobs
