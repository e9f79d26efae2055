"""A linear autoencoder finds what normal windows never did, whatever the channels' units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.traces.linear import LinearAutoencoder


def _series(points: int, seed: int) -> NDArray[np.float64]:
    """Three channels that move together in units of their own, one of noise, one that never moves."""
    random = np.random.default_rng(seed)
    phase = np.linspace(0, points / 20, points)
    wave = np.sin(phase) + 0.05 * random.normal(size=points)
    return np.stack(
        [wave, 1e9 * (wave + 2), 1e-6 * np.roll(wave, 3), random.normal(size=points), np.full(points, 7.0)],
        axis=1,
    )


def test_a_channel_that_stops_following_the_others_is_found_and_named() -> None:
    model = LinearAutoencoder.fit(_series(3000, 1))
    test = _series(1000, 2)
    test[400:460, 1] = 1e9 * 2  # each value alone is ordinary
    scores = model.score(test)
    normal = np.r_[scores[:370], scores[490:]]
    assert scores[410:450].min() > normal.max()
    assert int(model.errors(test)[410:450].mean(axis=0).argmax()) == 1
    assert np.median(normal) == pytest.approx(1, abs=0.5)


def test_a_change_in_a_channel_that_never_moved_is_found() -> None:
    model = LinearAutoencoder.fit(_series(3000, 1))
    test = _series(1000, 2)
    test[500:, 4] = 8.0
    scores = model.score(test)
    assert scores[540:].min() > scores[:460].max()


def test_a_contaminated_training_set_is_tolerated() -> None:
    train = _series(4000, 1)
    bad = _series(1000, 2)
    bad[400:460, 1] = 1e9 * 2
    contaminated = train.copy()
    contaminated[1000:1030, 1] = 1e9 * 2
    scores = LinearAutoencoder.fit(contaminated).score(bad)
    assert scores[410:450].min() > np.r_[scores[:370], scores[490:]].max()


def test_the_same_data_gives_the_same_model() -> None:
    train, test = _series(500, 1), _series(300, 2)
    assert np.array_equal(LinearAutoencoder.fit(train).score(test), LinearAutoencoder.fit(train).score(test))


def test_every_window_has_an_embedding() -> None:
    model = LinearAutoencoder.fit(_series(500, 1))
    assert model.embed(_series(300, 2)).shape == (300 - model.length + 1, model.directions.shape[1])


@settings(max_examples=40)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(100, 140), st.integers(1, 4)),
        elements=st.floats(width=32) | st.just(0.0),
    )
)
def test_any_numbers_give_finite_scores(values: NDArray[np.float64]) -> None:
    scores = LinearAutoencoder.fit(values).score(values)
    assert scores.shape == (len(values),)
    assert np.isfinite(scores).all()


def test_too_few_points_and_other_channels_are_errors() -> None:
    with pytest.raises(ModelError, match="100 are needed"):
        LinearAutoencoder.fit(np.zeros((99, 3)))
    model = LinearAutoencoder.fit(_series(500, 1))
    with pytest.raises(ModelError, match="5 channels"):
        model.score(np.zeros((50, 4)))
    with pytest.raises(ModelError, match="20"):
        model.score(np.zeros((5, 5)))
