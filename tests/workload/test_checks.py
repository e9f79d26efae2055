"""The detector under the checks that every detector must pass."""

from collections.abc import Callable

import pytest

from tocsin.core.detector import Detector
from tocsin.judge.checks import CHECKS
from tocsin.workload.detector import DETECTOR


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes(check: Callable[..., None]) -> None:
    check(DETECTOR)


def test_it_is_a_detector() -> None:
    assert isinstance(DETECTOR, Detector)
