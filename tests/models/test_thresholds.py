"""Threshold rules: precision, recall, alarms per day and cost."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import ModelError
from tocsin.models.thresholds import RULES, ThresholdRule, choose, table, threshold_from_json

P = np.array([0.9, 0.8, 0.8, 0.6, 0.4, 0.2])
Y = np.array([1, 1, 0, 1, 0, 0])
DAYS = np.array([0, 1, 2, 3, 4, 5]) * 86400  # a span of five days
HOURS = np.array([10.0, 1.0, 2.0, 100.0, 5.0, 50.0])
ROWS = st.lists(
    st.tuples(
        st.integers(0, 1), st.integers(0, 9).map(lambda n: n / 9), st.integers(0, 20), st.integers(0, 50)
    ),
    min_size=1,
    max_size=40,
)


def steady(precisions: list[float], *, each: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Jobs with probability 0.9 that fail this often in one month after the other, and as many with 0.1 that rarely do."""
    random = np.random.default_rng(5)
    months = np.repeat(np.arange(len(precisions)), each)
    sure = random.random(len(months)) < np.array(precisions)[months]
    y = np.r_[sure, random.random(len(months)) < 0.02].astype(float)
    p = np.r_[np.full(len(months), 0.9), np.full(len(months), 0.1)]
    return y, p, np.tile(months * 30 * 86400 + random.integers(0, 30 * 86400, len(months)), 2)


def test_precision_at_least_takes_the_most_recall_that_later_months_will_have() -> None:
    found = choose(ThresholdRule("precision_at_least", 0.8), *steady([0.93] * 6))
    assert (found.value, found.alarms, found.met) == (0.9, 1200, True)
    assert "in nine of ten later months" in found.text


@pytest.mark.parametrize(
    "months",
    [
        pytest.param([0.82] * 6, id="without a margin"),
        pytest.param([0.99, 0.99, 0.99, 0.62, 0.99, 0.99], id="with a bad month"),
    ],
)
def test_a_precision_that_the_next_month_may_not_have_is_not_promised(months: list[float]) -> None:
    y, p, submit = steady(months)
    assert y[p > 0.5].mean() > 0.8
    found = choose(ThresholdRule("precision_at_least", 0.8), y, p, submit)
    assert (found.met, found.alarms) == (False, 0)
    assert "no threshold promises precision 0.8" in found.text


def test_a_handful_of_good_alarms_promises_nothing() -> None:
    few = choose(ThresholdRule("precision_at_least", 0.8), *steady([1.0] * 2, each=5))
    assert not few.met


def test_recall_at_least_takes_the_most_precise() -> None:
    found = choose(ThresholdRule("recall_at_least", 0.3), Y, P, DAYS)
    assert (found.value, found.precision) == (0.9, 1.0)
    assert found.recall == pytest.approx(1 / 3)


def test_alarms_a_day_are_counted_over_the_span() -> None:
    found = choose(ThresholdRule("alarms_per_day_at_most", 0.6), Y, P, DAYS)
    assert (found.value, found.alarms, found.alarms_per_day) == (0.8, 3, 0.6)


def test_least_cost_weighs_rows_by_node_hours() -> None:
    found = choose(ThresholdRule("least_cost", 1.0), Y, P, DAYS, HOURS)
    assert (found.value, found.saved, found.delayed, found.wasted) == (0.6, 111.0, 2.0, 0.0)
    dear = choose(ThresholdRule("least_cost", 1000.0), Y, P, DAYS, HOURS)
    assert (dear.value, dear.saved, dear.delayed) == (0.9, 10.0, 0.0)


def test_where_no_threshold_is_as_precise_as_asked_for_nothing_rings() -> None:
    found = choose(ThresholdRule("precision_at_least", 0.9), 1 - Y, P, DAYS)
    assert not found.met
    assert "no threshold promises precision 0.9" in found.text
    assert found.alarms == 0
    assert found.value > 1, "not even a job that is surer than all of these"


def test_no_alarm_at_all_is_what_was_asked_for() -> None:
    found = choose(ThresholdRule("alarms_per_day_at_most", 0), Y, P, DAYS)
    assert found.met
    assert found.alarms == 0


def test_a_budget_below_one_alarm_is_silence() -> None:
    found = choose(ThresholdRule("alarms_per_day_at_most", 0.1), Y, P, DAYS)
    assert not found.met
    assert "no alarms" in found.text
    assert found.alarms == 0
    assert found.value > P.max()


@pytest.mark.parametrize("kind", ["precision_at_least", "recall_at_least"])
def test_without_failing_rows_it_cannot_be_told(kind: str) -> None:
    found = choose(ThresholdRule(kind, 0.5), np.zeros(6), P, DAYS)
    assert not found.met
    assert "none of these jobs failed" in found.text
    assert found.recall is None


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sampled_from(sorted(RULES)), st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_what_is_said_of_a_threshold_is_what_it_does(
    rows: list[tuple[int, float, int, int]], kind: str, value: float
) -> None:
    y, p, day, hours = (np.array(column) for column in zip(*rows, strict=True))
    found = choose(ThresholdRule(kind, value), y, p, day * 86400, hours)
    rings = p >= found.value
    assert found.alarms == rings.sum()
    assert found.saved == pytest.approx(hours[rings & (y == 1)].sum())
    assert found.delayed == pytest.approx(hours[rings & (y == 0)].sum())
    assert found.wasted == pytest.approx(hours[~rings & (y == 1)].sum())
    if rings.any():
        assert found.precision == pytest.approx(y[rings].mean())
    if found.met and kind == "precision_at_least":
        assert (found.precision or 0) >= value
    if found.met and kind == "recall_at_least":
        assert (found.recall or 0) >= value
    if kind == "alarms_per_day_at_most":
        assert found.alarms_per_day <= value
    if kind == "least_cost":
        cost = found.wasted + value * found.delayed
        for other in [*p, 2.0]:
            rings = p >= other
            assert cost <= hours[~rings & (y == 1)].sum() + value * hours[rings & (y == 0)].sum() + 1e-9
    assert threshold_from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


def test_the_table_goes_from_silence_to_ringing_for_all() -> None:
    rows = table(Y, P, DAYS)
    assert [row.alarms for row in rows] == [0, 1, 3, 4, 5, 6]
    random = np.random.default_rng(0)
    many = table(random.integers(0, 2, 5000), random.random(5000), np.arange(5000) * 60, most=50)
    assert len(many) == 50
    assert [row.value for row in many] == sorted((row.value for row in many), reverse=True)


def test_rules_and_rows_that_are_none_are_refused() -> None:
    with pytest.raises(ModelError, match="is not a threshold rule"):
        ThresholdRule("luck", 1.0)
    with pytest.raises(ModelError, match="between 0 and 1"):
        ThresholdRule("precision_at_least", 90.0)
    with pytest.raises(ModelError, match="needs rows"):
        choose(ThresholdRule("recall_at_least", 0.5), np.empty(0), np.empty(0), np.empty(0))
    with pytest.raises(ModelError, match="negative"):
        choose(ThresholdRule("least_cost", 1.0), Y, P, DAYS, -HOURS)
    with pytest.raises(ModelError, match="not a threshold"):
        threshold_from_json({"value": 0.5})


def test_a_rule_reads_as_words() -> None:
    assert (
        str(ThresholdRule("alarms_per_day_at_most", 5)) == "at most 5 alarms a day, then the highest recall"
    )


def test_a_precision_of_a_few_alarms_is_luck() -> None:
    y = np.r_[np.ones(3), np.tile([1, 0, 0], 100)]
    p = np.r_[np.full(3, 0.9), np.linspace(0.8, 0.1, 300)]
    found = choose(ThresholdRule("precision_at_least", 0.8), y, p, np.arange(303) * 86400)
    assert not found.met
    assert found.alarms == 0
