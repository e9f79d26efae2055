"""The figures of a card come from jobs that chose nothing of what they are measured with."""

from dataclasses import replace

import polars as pl
import pytest

from tocsin.core.detector import Budget
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.model_card import model_card
from tocsin.judge.check_data import CheckData
from tocsin.models.thresholds import ThresholdRule

DETECTOR = FailureDetector(
    target=Target.FAILED, explainers=False, rule=ThresholdRule("precision_at_least", 0.5)
)


@pytest.fixture(scope="module")
def jobs(check_data: CheckData) -> pl.DataFrame:
    return check_data.ended()


def trained(jobs: pl.DataFrame, check_data: CheckData) -> FittedFailure:
    return DETECTOR.fit(jobs, check_data.known(), stage=Stage.SUBMIT, seed=0, budget=Budget(trials=1))


@pytest.fixture(scope="module")
def fitted(jobs: pl.DataFrame, check_data: CheckData) -> FittedFailure:
    return trained(jobs, check_data)


def test_those_that_measure_come_after_those_that_choose(fitted: FittedFailure) -> None:
    holdout = fitted.holdout
    assert not (holdout.chooses & holdout.measures).any()
    assert holdout.submit[holdout.chooses].max() < holdout.submit[holdout.measures].min()
    assert holdout.measures.sum() == pytest.approx(0.2 * fitted.rows, rel=0.1)


def test_other_outcomes_of_those_that_measure_change_only_the_figures(
    jobs: pl.DataFrame, check_data: CheckData, fitted: FittedFailure
) -> None:
    measured = int(fitted.holdout.submit[fitted.holdout.measures].min())
    turned = {str(Outcome.FAILED): str(Outcome.COMPLETED), str(Outcome.COMPLETED): str(Outcome.FAILED)}
    late = pl.when(pl.col("submit") >= measured).then(pl.col("outcome").replace(turned)).otherwise("outcome")
    other = trained(jobs.with_columns(outcome=late), check_data)
    assert other.plan == fitted.plan
    assert other.rehearsal == fitted.rehearsal
    before, after = (
        {figure.name: figure.value for figure in model_card(each, created=1).figures}
        for each in (fitted, other)
    )
    assert (before["auc"] or 0) > 0.6 > (after["auc"] or 1)


def test_the_card_says_which_rows_were_used_for_what(fitted: FittedFailure) -> None:
    card = model_card(fitted, created=1)
    assert card.uses["model in use"] == f"all {fitted.rows:,} jobs"
    assert f"{int(fitted.holdout.measures.sum()):,} jobs" in card.uses["figures"]
    assert "used for nothing else" in card.figures[0].split
    assert card.to_json()["uses"] == dict(card.uses)
    assert "uses" not in replace(card, uses={}).to_json()


def test_intervals_contain_their_values(fitted: FittedFailure) -> None:
    for figure in model_card(fitted, created=1).figures:
        if figure.value is not None and figure.low is not None and figure.high is not None:
            assert figure.low <= figure.value <= figure.high, figure
