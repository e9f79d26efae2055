"""Curves hold against scikit-learn's, stay small, and say what they cannot show."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve  # type: ignore[import-untyped]  # it ships no types

from tocsin.models.curves import MOST_POINTS, curves, write_curves


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


@pytest.mark.parametrize(
    ("y", "p"), [([], []), ([0, 0, 0], [0.1, 0.2, 0.2]), ([1, 1], [0.3, 1.0]), ([1, 0], [0.5, 0.5])]
)
def test_one_class_or_no_row_is_said_and_still_drawn(tmp_path: Path, y: list[int], p: list[float]) -> None:
    found = write_curves(tmp_path, np.array(y), np.array(p), threshold=0.5, title="few")
    if len(set(y)) < 2:
        assert found["roc"]["auc"] is None
        assert found["roc"]["reason"] == "all rows are of one class"
    assert json.loads((tmp_path / "curves.json").read_text()) == found
    for name in ("pr", "roc", "confidence", "calibration"):
        ElementTree.fromstring((tmp_path / f"{name}.svg").read_text())


def test_the_pictures_of_a_training_carry_its_title_and_figures(tmp_path: Path) -> None:
    y, p = predictions()
    found = write_curves(tmp_path / "new", y, p, threshold=0.4, title="failure at submit")
    picture = (tmp_path / "new" / "pr.svg").read_text()
    assert "failure at submit" in picture
    assert f"average precision {found['pr']['average_precision']:.3f}" in picture
    assert "threshold 0.4" in picture
