"""Selection keeps what matters once, and says of each feature left out why."""

import numpy as np
import pytest

from tocsin.core.errors import ModelError
from tocsin.failure.feature_selection import select


def matrix(rows: int = 500) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(rows, 6)).astype(np.float32)
    X[:, 1] = np.exp(X[:, 0])  # the same order
    X[:, 2] = 7
    X[::3, 3] = np.nan
    return X


NAMES = ["a", "a_again", "constant", "gappy", "useless", "fine"]


def test_each_feature_is_kept_or_has_a_reason() -> None:
    found = select(matrix(), NAMES, [5, 9, 3, 2, 0, 1])
    assert [NAMES[place] for place in found.kept] == ["a_again", "gappy", "fine"]
    assert found.dropped == {
        "constant": "has the same value in every job",
        "useless": "has 0 of all gain, less than 0.0001",
        "a": "repeats a_again (correlation 1.000), which has more gain",
    }


def test_a_feature_that_falls_as_another_rises_is_the_same() -> None:
    X = matrix()
    X[:, 5] = -X[:, 0]
    assert "fine" in select(X, NAMES, [9, 1, 1, 1, 1, 5]).dropped


def test_the_number_can_be_bounded() -> None:
    found = select(matrix(), NAMES, [5, 9, 3, 2, 1, 1], most=2)
    assert [NAMES[place] for place in found.kept] == ["a_again", "gappy"]
    assert found.dropped["fine"] == "is not among the 2 features with the most gain"


def test_gaps_are_a_value_like_any_other() -> None:
    X = np.zeros((100, 2), dtype=np.float32)
    X[::2, 0] = np.nan
    X[:, 1] = np.arange(100) % 2
    found = select(X, ["told", "odd"], [2, 1])
    assert found.kept == (0,)
    assert "repeats" in found.dropped["odd"]


def test_without_any_gain_nothing_is_dropped_for_it() -> None:
    assert select(matrix(), NAMES, [0] * 6).kept == (0, 3, 4, 5)


def test_no_rows_and_wrong_sizes_are_no_accident() -> None:
    assert select(np.zeros((0, 2), dtype=np.float32), ["a", "b"], [1, 2]).kept == ()
    with pytest.raises(ModelError, match="do not match"):
        select(matrix(), ["a"], [1])
