"""The precision that alarms will have in a later month: its range includes the variation from period to period.

Resampling the days of one period shows how well its own precision is known, but nothing about the next one: on
KTH-SP2, a threshold with 0.807 [0.767, 0.849] in one part had 0.693 in the next.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.models.splits import DAY

__all__ = ["Range", "later_precision", "lowest_precision", "periods"]

PERIOD = 30 * DAY
FEWEST_PERIODS = 6
"""A shorter span is cut into this many periods."""
BELOW = 1.28
"""Standard deviations: nine of ten later periods are above."""
AROUND = 1.96
"""Standard deviations to both sides: 19 of 20 later periods are inside."""
SPREAD = 0.1
"""The standard deviation between periods at precision 0.8, assumed with the weight of three periods: a few periods that
happen to agree do not prove that precision never changes."""
WEIGHT = 3.0
_LEAST_VARIANCE = 0.95 * 0.05

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Range:
    """A value and the range expected later."""

    value: float
    low: float
    high: float


def periods(submit: NDArray[Any]) -> NDArray[np.int64]:
    """The index of each row's period: 30 days, or a sixth of the time if that is shorter."""
    times = np.asarray(submit, dtype=np.int64)
    length = min(PERIOD, (int(np.ptp(times)) + 1) / FEWEST_PERIODS)
    return np.asarray((times - times.min()) // length, dtype=np.int64)


def lowest_precision(alarms: Floats, hits: Floats) -> Floats:
    """For each column of (periods, thresholds), the precision that nine of ten later periods will exceed."""
    mean, deviation = _expected(alarms, hits)
    measured = hits.sum(axis=0) / np.maximum(alarms.sum(axis=0), 1)
    return np.asarray(np.clip(mean - BELOW * deviation, 0.0, measured))


def later_precision(alarm: NDArray[np.bool_], y: NDArray[Any], submit: NDArray[Any]) -> Range | None:
    """The precision of these alarms, and the range that 19 of 20 later periods will be in; None without alarms."""
    if not alarm.any():
        return None
    place, counts = periods(submit), alarm.astype(np.float64)
    alarms, hits = (
        np.asarray(np.bincount(place, weights=weight)[:, None], dtype=np.float64)
        for weight in (counts, counts * np.asarray(y, dtype=np.float64))
    )
    value = float(hits.sum() / alarms.sum())
    mean, deviation = (float(each[0]) for each in _expected(alarms, hits))
    low, high = mean - AROUND * deviation, mean + AROUND * deviation
    return Range(value, max(0.0, min(low, value)), min(1.0, max(high, value)))


def _expected(alarms: Floats, hits: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of the precision in another period, by column.

    Periods are weighted by their alarms. The variance between them is what counting so few alarms in each does not
    explain, shrunk towards SPREAD; the mean is uncertain by the number of periods and the number of alarms.
    """
    number, found = alarms.sum(axis=0), hits.sum(axis=0)
    share = alarms / np.maximum(number, 1)
    mean = (found + 1) / (number + 2)
    gaps = hits / np.maximum(alarms, 1) - found / np.maximum(number, 1)
    count = 1 / np.maximum(
        (share**2).sum(axis=0), 1e-9
    )  # of periods, as if all had the same number of alarms
    counting = mean * (1 - mean) / np.maximum(number, 1)
    by_luck = np.maximum((alarms > 0).sum(axis=0) - 1, 0) * counting
    unlucky = np.maximum((share * gaps**2).sum(axis=0) - by_luck, 0.0)
    between = unlucky * count / np.maximum(count - 1, 0.5)
    usual = SPREAD**2 * np.maximum(mean * (1 - mean), _LEAST_VARIANCE) / (0.8 * 0.2)
    variance = (WEIGHT * usual + count * between) / (WEIGHT + count) * (1 + 1 / count)
    return mean, np.asarray(np.sqrt(variance + counting))
