"""The detector under the checks that every detector must pass."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from tests.kits.pca_traces import pca_detector
from tocsin.core.detector import Budget, Detector, Known
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level
from tocsin.judge.check_data import demo_check_data
from tocsin.judge.checks import CHECKS, no_leak
from tocsin.judge.plugins import find_detectors
from tocsin.traces import training
from tocsin.traces.detector import DETECTOR, TracesDetector
from tocsin.traces.fitted import FittedTraces

SMALL = pca_detector()
SHORT = TracesDetector()
"""Another object than the installed one: the model that other tests keep of that is trained to its end."""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_passes(check: Callable[..., None]) -> None:
    check(SMALL)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_autoencoder_passes_after_a_short_training(
    check: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "_EPOCHS", 1)
    check(SHORT)


def test_it_is_installed_as_a_detector() -> None:
    assert isinstance(DETECTOR, Detector)
    assert find_detectors()["traces"] is DETECTOR


def test_the_checks_see_alarms_as_well_as_normal_jobs_and_jobs_without_windows() -> None:
    data = demo_check_data()
    for known, jobs in (
        (data.known(), data.asked(Stage.RUNNING)),
        (data.known(now=data.cut), data.asked(Stage.RUNNING, until=data.cut)),
    ):
        answers = data.fitted(SMALL, Stage.RUNNING).assess(jobs, known, stage=Stage.RUNNING)
        looked = [parts for parts in answers if not parts.missing]
        assert {finding.level for parts in looked for finding in parts.findings} == {Level.WARNING}
        assert any(not parts.findings for parts in looked)
    unseen = data.asked(Stage.RUNNING).filter(pl.col("task") % 2 == 1)
    [parts, *_] = data.fitted(SMALL, Stage.RUNNING).assess(unseen, data.known(), stage=Stage.RUNNING)
    assert "no window of 20 s" in parts.missing["traces"]


class _Peeks(FittedTraces):
    """Looks at windows that ended after the instant of the question."""

    def alarms(self, jobs: pl.DataFrame, known: Any, *, stage: Stage) -> Any:
        known.now += 30
        try:
            return super().alarms(jobs, known, stage=stage)
        finally:
            known.now -= 30


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaks(TracesDetector):
    def fit(
        self, jobs: pl.DataFrame, known: Known, *, stage: Stage, seed: int, budget: Budget
    ) -> FittedTraces:
        fitted = SMALL.fit(jobs, known, stage=stage, seed=seed, budget=budget)
        return _Peeks(**{name: getattr(fitted, name) for name in FittedTraces.__slots__})


def test_a_detector_that_looks_at_later_windows_is_caught() -> None:
    with pytest.raises(AssertionError, match="it leaks"):
        no_leak(_Leaks())
