"""Which rows are worth asking about."""

import numpy as np

from tocsin.models.asking import worth_asking


def test_an_unsure_row_that_stands_for_many_comes_first() -> None:
    X = np.zeros((100, 3), dtype=np.float32)
    X[0] = 9.0  # unlike all others
    p = np.full(100, 0.05)
    p[[0, 1]] = 0.5
    worth = worth_asking(p, X)
    assert np.argmax(worth) == 1
    assert worth[0] < worth[1] / 10


def test_gaps_are_values_like_others_and_the_answer_repeats() -> None:
    X = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    X[::3, 1] = np.nan
    p = np.linspace(0, 1, 50)
    first = worth_asking(p, X, seed=3)
    assert np.isfinite(first).all()
    assert (first == worth_asking(p, X, seed=3)).all()


def test_one_row_can_be_asked_about() -> None:
    assert worth_asking(np.array([0.5]), np.zeros((1, 2), dtype=np.float32)).tolist() == [1.0]
