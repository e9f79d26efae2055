"""A threshold is eased half way to the next probability: the same jobs ring, and the last digits of one decide nothing."""

from dataclasses import replace

import numpy as np
import pytest

from tocsin.failure.holdout import _lowered
from tocsin.models.thresholds import Threshold, ThresholdRule

P = np.array([0.1, 0.3, 0.6, 0.8, 0.9])
FOUND = Threshold(
    value=0.8, alarms=2, alarms_per_day=1.0, precision=1.0, recall=0.5, saved=2.0, delayed=0.0, wasted=1.0
)


def rings(threshold: Threshold) -> list[bool]:
    return [bool(p >= threshold.value) for p in P]


def test_it_lies_half_way_and_the_same_jobs_ring() -> None:
    eased = _lowered(FOUND, P)
    assert eased.value == pytest.approx(0.7)
    assert rings(eased) == rings(FOUND)
    assert replace(eased, value=FOUND.value) == FOUND  # what it would have done is the same


@pytest.mark.parametrize(("asked", "value"), [(0.5, 0.7), (0.75, 0.75), (0.8, 0.8), (0.95, 0.8)])
def test_it_does_not_fall_below_the_precision_that_is_asked_for(asked: float, value: float) -> None:
    eased = _lowered(replace(FOUND, rule=ThresholdRule("precision_at_least", asked)), P)
    assert eased.value == pytest.approx(value)
    assert rings(eased) == rings(FOUND)


def test_another_rule_asks_for_no_precision() -> None:
    assert _lowered(replace(FOUND, rule=ThresholdRule("recall_at_least", 0.9)), P).value == pytest.approx(0.7)


@pytest.mark.parametrize(
    "kept",
    [
        replace(FOUND, met=False),  # the rule cannot be met: nothing is loosened
        replace(FOUND, alarms=0, value=1.0),  # nothing rings, and nothing shall
        replace(FOUND, alarms=5, value=0.1),  # all ring: there is nothing below
    ],
)
def test_otherwise_it_stays(kept: Threshold) -> None:
    assert _lowered(kept, P) == kept
