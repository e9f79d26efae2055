"""The range of a precision: it contains its value, and it is as wide as precision varies between periods."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.models.promise import Range, later_precision, lowest_precision, periods

DAY = 86400
COUNTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12)


def months(precisions: list[float], alarms: int = 100) -> Range:
    y = np.concatenate([np.arange(alarms) < share * alarms for share in precisions]).astype(float)
    submit = np.repeat(np.arange(len(precisions)) * 30 * DAY, alarms)
    found = later_precision(np.ones(len(y), dtype=bool), y, submit)
    assert found
    return found


def test_a_period_is_a_month_or_a_sixth_of_the_time() -> None:
    assert periods(np.arange(0, 365, 5) * DAY).tolist() == [day // 30 for day in range(0, 365, 5)]
    assert np.bincount(periods(np.arange(60) * DAY)).tolist() == [10] * 6
    assert periods(np.array([7, 7, 7])).tolist() == [0, 0, 0]


def test_precision_that_varies_has_a_wider_range_than_one_that_does_not() -> None:
    steady, varying = months([0.8] * 8), months([0.95, 0.65] * 4)
    assert steady.value == varying.value == pytest.approx(0.8)
    assert varying.high - varying.low > 1.5 * (steady.high - steady.low)
    assert varying.low < 0.65


def test_the_next_of_many_drifting_months_is_nearly_always_inside() -> None:
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(200):
        shares = random.normal(0.8, 0.08, 9).clip(0, 1)
        found = months([float(share) for share in shares[:8]])
        inside += found.low <= shares[8] <= found.high
    assert inside >= 0.85 * 200


def test_without_an_alarm_there_is_no_precision() -> None:
    assert later_precision(np.zeros(5, dtype=bool), np.ones(5), np.arange(5)) is None


@settings(max_examples=200, deadline=None)
@given(COUNTS)
def test_the_range_contains_its_value_and_nothing_beyond_0_and_1(counts: list[tuple[int, int]]) -> None:
    y = np.concatenate([np.r_[np.ones(good), np.zeros(bad)] for good, bad in counts])
    submit = np.concatenate([np.full(sum(each), place * 20 * DAY) for place, each in enumerate(counts)])
    found = later_precision(np.ones(len(y), dtype=bool), y, submit) if len(y) else None
    if found is None:
        return
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.value == pytest.approx(y.mean())
    alarms, hits = (
        np.array([[float(each)] for each in column]) for column in zip(*_sums(counts), strict=True)
    )
    assert 0 <= lowest_precision(alarms, hits)[0] <= found.value


def _sums(counts: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(good + bad, good) for good, bad in counts]
