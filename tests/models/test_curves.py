"""Curves agree with scikit-learn, stay small, and can be drawn."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve  # type: ignore[import-untyped]  # it ships no types

from tests.kits.model_cards import card
from tocsin.core.errors import ModelError
from tocsin.models.curves import MOST_POINTS, curves, draw_curves


def predictions(rows: int = 5_000, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    random = np.random.default_rng(seed)
    p = random.beta(1, 4, rows)
    return (random.random(rows) < p).astype(np.int64), p


def test_every_point_lies_on_the_curve_of_scikit_learn() -> None:
    y, p = predictions()
    found = curves(y, p, threshold=0.4)
    precision, recall, _ = precision_recall_curve(y, p)
    wrong, right, _ = roc_curve(y, p, drop_intermediate=False)
    ours = set(zip(found["pr"]["recall"][1:], found["pr"]["precision"][1:], strict=True))
    assert ours <= set(zip(recall.round(6).tolist(), precision.round(6).tolist(), strict=True))
    roc = set(zip(found["roc"]["false_positive_rate"], found["roc"]["recall"], strict=True))
    assert roc <= set(zip(wrong.round(6).tolist(), right.round(6).tolist(), strict=True))


def test_curves_of_many_rows_stay_small_and_keep_their_ends() -> None:
    y, p = predictions(200_000)
    found = curves(y, p, threshold=0.4)
    for name, across in (("pr", "recall"), ("roc", "false_positive_rate")):
        assert 100 < len(found[name][across]) <= MOST_POINTS
        assert (found[name][across][0], found[name][across][-1]) == (0.0, 1.0)
    area = np.trapezoid(found["roc"]["recall"], found["roc"]["false_positive_rate"])
    assert area == pytest.approx(found["roc"]["auc"], abs=0.002)


def test_the_point_at_the_threshold_counts_the_alarms() -> None:
    y, p = predictions()
    at = curves(y, p, threshold=0.4)["at_threshold"]
    rings = p >= 0.4
    assert at["alarms"] == rings.sum()
    assert at["precision"] == pytest.approx(y[rings].mean())
    assert at["recall"] == pytest.approx(rings[y == 1].mean())
    assert at["false_positive_rate"] == pytest.approx(rings[y == 0].mean())


def test_calibration_covers_true_probabilities_and_confidence_counts_every_row() -> None:
    y, p = predictions()
    found = curves(y, p, threshold=0.4)
    table = found["calibration"]
    covered = [
        low <= x <= high for x, low, high in zip(table["predicted"], table["low"], table["high"], strict=True)
    ]
    assert sum(covered) >= len(covered) - 2
    assert sum(table["rows"]) == len(y)
    assert sum(found["confidence"]["positive"]) == y.sum()
    assert sum(found["confidence"]["negative"]) == (1 - y).sum()


@pytest.mark.parametrize(("y", "p"), [([], []), ([0, 0, 0], [0.1, 0.2, 0.2]), ([1, 1], [0.3, 1.0])])
def test_a_curve_that_does_not_exist_has_a_reason(y: list[int], p: list[float]) -> None:
    found = curves(np.array(y), np.array(p), threshold=0.5)
    assert found["roc"]["auc"] is None
    assert found["roc"]["reason"] == "all rows are of one class"
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_curves_that_a_model_keeps_are_drawn(tmp_path: Path) -> None:
    y, p = predictions()
    (tmp_path / "curves.json").write_text(json.dumps(curves(y, p, threshold=0.4)))
    drawn = draw_curves(tmp_path, card(), tmp_path / "new")
    assert {path.name for path in drawn} == {
        "precision-recall.svg",
        "roc.svg",
        "calibration.svg",
        "scores.svg",
    }
    assert all("failed at submit; first 80 % by time → rest" in path.read_text() for path in drawn)


def test_a_model_without_curves_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nothing to draw"):
        draw_curves(tmp_path, card(), tmp_path / "new")
