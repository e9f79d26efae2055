"""First metrics are features at `early`, and at no stage before it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tocsin.core.fields import Part, fields_of
from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage
from tocsin.failure.detector import DETECTOR
from tocsin.failure.feature_sentences import sentence
from tocsin.judge.check_data import CheckData, demo_check_data
from tocsin.judge.checks import missing_values, no_leak, respects_stages, saved_is_same

FIELDS = set(fields_of(Part.FIRST_METRICS))
EARLY = replace(DETECTOR, stages=(Stage.EARLY,))


@pytest.fixture(scope="module")
def measured() -> CheckData:
    """The demo's week; jobs that fail idle in their first two minutes and use more memory."""
    demo = demo_check_data()
    noise = np.random.default_rng(3)
    idle = (pl.col("outcome") != "completed").fill_null(False)
    values = {
        "first_cpu_user": pl.when(idle).then(0.2).otherwise(0.8) + noise.normal(0, 0.1, demo.log.height),
        "first_memory_peak": pl.when(idle).then(2**34).otherwise(2**30) + noise.integers(2**20, size=demo.log.height),
    }  # fmt: skip
    early = reached_at(Stage.EARLY).is_not_null()
    log = demo.log.with_columns(
        pl.when(early).then(value).cast(demo.log.schema[name]).alias(name) for name, value in values.items()
    )
    return CheckData(log, demo.machine, demo.scripts)


def test_the_model_at_early_learns_from_them(measured: CheckData) -> None:
    known, fitted = measured.known(), measured.fitted(EARLY, Stage.EARLY)
    assert FIELDS & set(fitted.columns.names)  # type: ignore[attr-defined]  # of a FittedFailure
    later = measured.log.filter(
        pl.col("submit") > measured.cut,
        reached_at(Stage.EARLY).is_not_null(),
        pl.col("outcome").is_in(["completed", "failed"]),
    )
    risk = [parts.failure.probability for parts in fitted.assess(later, known, stage=Stage.EARLY)]  # type: ignore[union-attr]
    failed = (later["outcome"] == "failed").to_numpy()
    assert np.mean(np.array(risk)[failed]) > 0.8 > 0.2 > np.mean(np.array(risk)[~failed])


@pytest.mark.parametrize("check", [no_leak, respects_stages, missing_values, saved_is_same])
def test_the_model_at_early_passes(check: Callable[..., None], measured: CheckData) -> None:
    check(EARLY, measured)


def test_no_earlier_stage_sees_them(measured: CheckData) -> None:
    start = replace(DETECTOR, stages=(Stage.START,))
    fitted = measured.fitted(start, Stage.START)
    assert not FIELDS & set(fitted.columns.names)  # type: ignore[attr-defined]  # of a FittedFailure
    respects_stages(start, measured)


def test_they_are_explained_in_words() -> None:
    assert sentence("first_memory_peak", 2**31, {}) == "it used up to 2G of memory in the first two minutes"
    assert sentence("first_cpu_user", 0.125, {}) == "its CPUs spent 12% of the first two minutes in user mode"
    assert sentence("first_page_faults", 12, {}) == "it had 12 page faults in the first two minutes"
