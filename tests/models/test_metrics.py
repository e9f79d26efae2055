"""Metrics: equal to scikit-learn, with intervals or the reason why there is none."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as reference  # type: ignore[import-untyped]  # it ships no types

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.models.metrics import METRICS, Metric, calibration_error, evaluate, measure

ROWS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 8).map(lambda n: n / 8)), min_size=1, max_size=40)


def by_name(rows: list[Metric]) -> dict[str, Metric]:
    return {row.name: row for row in rows}


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0]))
def test_every_metric_agrees_with_scikit_learn_ties_too(
    rows: list[tuple[int, float]], threshold: float
) -> None:
    y, p = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    called = p >= threshold
    found = {name: measure(name, y, p, threshold=threshold) for name in METRICS}
    assert found["accuracy"] == pytest.approx(reference.accuracy_score(y, called))
    assert found["brier"] == pytest.approx(np.mean((y - p) ** 2))
    assert found["baseline"] == pytest.approx(max(y.mean(), 1 - y.mean()))
    if 0 < y.sum() < len(y):
        assert found["auc"] == pytest.approx(reference.roc_auc_score(y, p))
    else:
        assert np.isnan(found["auc"])
    if y.sum():
        assert found["average_precision"] == pytest.approx(reference.average_precision_score(y, p))
        assert found["recall"] == pytest.approx(reference.recall_score(y, called))
        assert found["f1"] == pytest.approx(reference.f1_score(y, called))
    if called.any():
        assert found["precision"] == pytest.approx(reference.precision_score(y, called))


def test_the_order_of_rows_changes_nothing() -> None:
    random = np.random.default_rng(0)
    y, p = random.integers(0, 2, 500), random.integers(0, 20, 500) / 20
    mixed = random.permutation(500)
    for name in METRICS:
        assert measure(name, y, p) == pytest.approx(measure(name, y[mixed], p[mixed]), abs=1e-12)


def test_calibration_error_by_hand() -> None:
    p = np.repeat([0.2, 0.8], 500)
    y = np.r_[np.repeat([1, 0], [100, 400]), np.repeat([1, 0], [300, 200])]
    assert calibration_error(y, p) == pytest.approx(0.1)  # right below, 0.6 instead of 0.8 above
    assert calibration_error(y, np.repeat([0.2, 0.6], 500)) == pytest.approx(0.0)


def test_one_class_gives_reasons_not_warnings() -> None:
    days = np.arange(10) * 86400
    found = by_name(evaluate(np.zeros(10), np.linspace(0, 0.4, 10), days, threshold=0.5))
    assert found["auc"].value is None
    assert found["auc"].reason == "all rows are of one class"
    assert found["precision"].reason == "no row reaches the threshold"
    assert found["recall"].reason == "no row is positive"
    assert (found["accuracy"].value, found["baseline"].value) == (1.0, 1.0)


def test_no_rows_give_reasons() -> None:
    empty = np.empty(0)
    assert {row.value for row in evaluate(empty, empty, empty, threshold=0.5)} == {None}


def test_one_day_has_no_interval_and_says_so() -> None:
    found = by_name(evaluate(np.array([0, 1]), np.array([0.1, 0.9]), np.array([0, 1]), threshold=0.5))
    assert found["auc"].value == 1.0
    assert found["auc"].low is None
    assert "one block" in str(found["auc"].reason)


def test_intervals_hold_the_value_repeat_and_grow_with_dependence() -> None:
    random = np.random.default_rng(1)
    day = np.repeat(np.arange(50), 40)
    bad_day = random.random(50)[day]
    p = random.random(2000)
    y = (random.random(2000) < (p + bad_day) / 2).astype(int)
    scattered = random.permutation(day)
    first, again = (evaluate(y, p, day * 86400, threshold=0.5, seed=7) for _ in range(2))
    assert first == again
    for row in first:
        assert row.low is not None
        assert row.high is not None
        if row.name != "calibration_error":  # resampling only ever adds to a mean of distances
            assert row.low <= (row.value or 0) <= row.high
    wide, narrow = (
        by_name(evaluate(y, p, when * 86400, threshold=0.5))["accuracy"] for when in (day, scattered)
    )
    assert (wide.high or 0) - (wide.low or 0) > 1.2 * ((narrow.high or 0) - (narrow.low or 0))


def test_an_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(2)
    inside = 0
    for seed in range(60):
        p = random.random(600)
        y = (random.random(600) < p).astype(int)
        row = by_name(evaluate(y, p, np.arange(600) * 8640, threshold=0.5, seed=seed))["accuracy"]
        inside += (row.low or 0) <= 0.75 <= (row.high or 0)
    assert 50 <= inside <= 60


def test_two_hundred_resamples_of_fifty_thousand_rows_take_seconds() -> None:
    random = np.random.default_rng(3)
    p = random.random(50_000)
    y = (random.random(50_000) < p).astype(int)
    began = time.process_time()
    evaluate(y, p, np.arange(50_000) * 300, threshold=0.5)
    assert time.process_time() - began < 5  # about 1 s; the rest is for a busy machine


def test_what_is_no_prediction_is_refused() -> None:
    for y, p, says in (
        ([0, 2], [0.1, 0.2], "neither 0 nor 1"),
        ([0, 1], [0.1, np.nan], "not between 0 and 1"),
        ([0, 1], [0.1, 1.2], "not between 0 and 1"),
        ([0, 1], [0.1], "differ in shape"),
    ):
        with pytest.raises(ModelError, match=says):
            measure("auc", np.array(y), np.array(p))
    with pytest.raises(ModelError, match='"gini" is not a metric'):
        measure("gini", np.array([0]), np.array([0.5]))


def test_a_metric_becomes_a_figure_of_a_card() -> None:
    figure = Metric(name="auc", value=0.9, low=0.8, high=0.95).figure(
        stage=Stage.SUBMIT, split="walk", data="KTH"
    )
    assert (figure.name, figure.value, figure.stage, figure.split) == ("auc", 0.9, Stage.SUBMIT, "walk")
