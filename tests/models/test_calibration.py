"""Calibrators: probabilities that match observed shares."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.core.errors import ModelError
from tocsin.models.calibration import (
    IDENTITY,
    Calibrator,
    calibrate,
    calibrator_from_json,
    fit_beta,
    fit_isotonic,
    fit_platt,
    towards_identity,
)
from tocsin.models.metrics import calibration_error

FITS = {"logistic": fit_platt, "beta": fit_beta, "isotonic": fit_isotonic}


def overconfident(rows: int = 6000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose log-odds are twice too large."""
    random = np.random.default_rng(seed)
    odds = random.normal(-1, 1.2, rows)
    y = (random.random(rows) < 1 / (1 + np.exp(-odds))).astype(float)
    return 1 / (1 + np.exp(-2 * odds)), y


@pytest.mark.parametrize("kind", FITS)
def test_each_kind_mends_overconfidence(kind: str) -> None:
    p, y = overconfident()
    later_p, later_y = overconfident(seed=1)
    fitted = FITS[kind](p, y)
    assert fitted.kind == kind
    assert calibration_error(later_y, later_p) > 0.06
    assert calibration_error(later_y, fitted.apply(later_p)) < 0.03


def test_the_logistic_curve_finds_the_truth() -> None:
    a, b = fit_platt(*overconfident(50_000)).numbers
    assert (a, b) == (pytest.approx(0.5, abs=0.03), pytest.approx(0, abs=0.05))


def test_a_curve_that_wins_on_later_rows_is_taken() -> None:
    chosen = calibrate(*overconfident())
    assert set(chosen.brier) == {"identity", *FITS}
    assert chosen.calibrator.kind != "identity"
    assert chosen.brier[chosen.calibrator.kind] < chosen.brier["identity"] - 0.005


def test_steps_are_taken_where_the_truth_has_steps() -> None:
    random = np.random.default_rng(6)
    p = random.random(8000)
    y = (random.random(8000) < np.where(p > 0.5, 0.7, 0.05)).astype(float)
    assert calibrate(p, y).calibrator.kind == "isotonic"


def test_good_scores_are_left_nearly_alone() -> None:
    random = np.random.default_rng(5)
    chosen, grid = [], np.linspace(0, 1, 101)
    for _ in range(20):
        p = random.random(2000)
        chosen.append(calibrate(p, (random.random(2000) < p).astype(float)).calibrator)
    assert sum(curve.kind in ("identity", "logistic") for curve in chosen) >= 17
    assert all(np.abs(curve.apply(grid) - grid).max() < 0.08 for curve in chosen)


def test_too_few_rows_or_one_class_are_left_alone_with_a_reason() -> None:
    for p, y in ((np.full(9, 0.5), np.zeros(9)), (np.linspace(0, 1, 400), np.zeros(400))):
        chosen = calibrate(p, y)
        assert chosen.calibrator is IDENTITY
        assert "not enough" in str(chosen.reason)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 1)), min_size=1, max_size=60),
    st.sampled_from(sorted(FITS)),
)
def test_every_curve_rises_stays_a_probability_and_comes_back_from_JSON(
    rows: list[tuple[float, int]], kind: str
) -> None:
    fitted = FITS[kind](np.array([r[0] for r in rows]), np.array([r[1] for r in rows], dtype=float))
    x = np.linspace(0, 1, 201)
    curve = fitted.apply(x)
    assert (np.diff(curve) >= -1e-12).all()
    assert ((curve > 0) & (curve < 1)).all()
    again = calibrator_from_json(json.loads(json.dumps(fitted.to_json(), allow_nan=False)))
    assert again == fitted
    assert np.array_equal(again.apply(x), curve)


@pytest.mark.parametrize("kind", FITS)
def test_a_curve_moves_towards_the_identity(kind: str) -> None:
    p, y = overconfident(2000)
    curve, scores = FITS[kind](p, y), np.linspace(0.1, 0.9, 9)
    near, far = (np.abs(towards_identity(curve, share).apply(scores) - scores).max() for share in (0.9, 0.1))
    assert 0 < near < far < np.abs(curve.apply(scores) - scores).max()
    assert towards_identity(curve, 0.0).apply(scores) == pytest.approx(curve.apply(scores))
    assert calibrator_from_json(towards_identity(curve, 0.5).to_json()) == towards_identity(curve, 0.5)


def test_the_identity_comes_back_too() -> None:
    assert calibrator_from_json(IDENTITY.to_json()) == IDENTITY
    assert IDENTITY.apply(np.array([0.0, 0.3])).tolist() == [0.0, 0.3]


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "spline", "numbers": []},
        {"kind": "logistic", "numbers": [1.0]},
        {"kind": "logistic", "numbers": [-1.0, 0.0]},
        {"kind": "logistic", "numbers": [1.0, "b"]},
        {"kind": "beta", "numbers": [1.0, float("nan"), 0.0]},
        {"kind": "isotonic", "numbers": [[0.0, 1.0], [0.9, 0.1]]},
        {"kind": "isotonic", "numbers": [[1.0, 0.0], [0.1, 0.9]]},
        {"kind": "isotonic", "numbers": [[0.0, 1.0], [0.1]]},
        {"kind": "isotonic", "numbers": [[], []]},
        {"kind": "identity", "numbers": [], "more": 1},
    ],
)
def test_what_is_no_calibration_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="not a calibration"):
        calibrator_from_json(document)


def test_scores_that_are_none_are_refused() -> None:
    with pytest.raises(ModelError, match="between 0 and 1"):
        fit_platt(np.array([0.5, np.nan]), np.array([0.0, 1.0]))


def test_a_single_score_can_be_calibrated() -> None:
    assert Calibrator("logistic", (1.0, 0.0)).apply(np.array([0.25]))[0] == pytest.approx(0.25)
