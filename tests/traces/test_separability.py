"""Kinds of jobs are separated by their waveforms, the better the finer they are sampled."""

import numpy as np
import pytest
from numpy.typing import NDArray

from tocsin.core.errors import InputError
from tocsin.traces.separability import INTERVALS, Score, Way, coarser, cut_waveforms, silhouettes
from tocsin.traces.series import Series

RANDOM = np.random.default_rng(0)
KINDS = ["a"] * 120 + ["b"] * 120


def waveforms(a: NDArray[np.float64], b: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """120 of each kind, 100 s of one channel."""
    shapes = np.repeat([a, b], 120, axis=0)
    return (shapes + RANDOM.normal(0, noise, shapes.shape))[:, :, None]


def by_interval(scores: list[Score], way: Way) -> dict[int, float]:
    return {each.interval: each.mean for each in scores if each.way == way}


def test_noisy_seconds_tell_less_the_fewer_there_are() -> None:
    scores = silhouettes(waveforms(np.full(100, 0.4), np.full(100, 0.6), 0.2), KINDS)
    picked = by_interval(scores, "pick")
    assert list(picked) == list(INTERVALS)
    assert picked[1] > picked[5] > picked[20] > picked[30]
    assert picked[1] > picked[30] + 0.2


def test_a_fast_pattern_is_lost_where_a_reader_averages_over_it() -> None:
    wave = 0.2 * np.sin(2 * np.pi * np.arange(100) / 5)
    averaged = by_interval(silhouettes(waveforms(wave, -wave, 0.1), KINDS), "mean")
    assert averaged[1] > 0.6
    assert averaged[5] < 0.1


def test_scores_have_a_spread_and_repeat() -> None:
    some = waveforms(np.full(100, 0.45), np.full(100, 0.55), 0.2)
    first, second = (silhouettes(some, KINDS, draws=5) for _ in range(2))
    assert first == second
    assert all(each.deviation > 0 for each in first)


def test_a_coarser_waveform_is_the_last_second_or_the_mean_of_each_interval() -> None:
    ramp = np.arange(10.0).reshape(1, 10, 1)
    assert coarser(ramp, 3, "pick").ravel().tolist() == [2, 5, 8]
    assert coarser(ramp, 3, "mean").ravel().tolist() == [1, 4, 7]


def test_kinds_with_few_waveforms_are_left_out_and_named() -> None:
    def series(kind: str, seconds: int) -> Series:
        return Series(kind, "n1/1", np.zeros((seconds, 3)))

    found, kinds, few = cut_waveforms([series("a", 512), series("b", 1_099), series("c", 420)], 100)
    assert found.shape == (15, 100, 3)
    assert (kinds.count("a"), kinds.count("b"), few) == (5, 10, {"c": 4})
    with pytest.raises(InputError, match="1 kinds of jobs have 5 waveforms of 200 s or more; two are needed"):
        cut_waveforms([series("a", 512), series("b", 1_099)], 200)
