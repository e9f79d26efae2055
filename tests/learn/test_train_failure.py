"""A training run leaves a version with its card; another threshold is another version."""

from pathlib import Path

import pytest

from tests.learn.conftest import DETECTOR, QUICK
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.judge.check_data import CheckData
from tocsin.learn.train_failure import TrainedFailure, set_rule, train_failure
from tocsin.models.registry import Registry
from tocsin.models.thresholds import RULES, ThresholdRule


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return Registry(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def kept(registry: Registry, check_data: CheckData) -> TrainedFailure:
    return train_failure(
        check_data.ended(), check_data.known(), registry, DETECTOR, stage=Stage.SUBMIT, budget=QUICK
    )


def test_a_trained_model_is_in_use_with_its_card_and_curves(registry: Registry, kept: TrainedFailure) -> None:
    folder, card = registry.open_verified("failure", stage=Stage.SUBMIT)
    assert card.version == kept.version
    assert card.parent is None
    assert (card.target, card.stage, card.rows) == ("failed", Stage.SUBMIT, kept.model.rows)
    assert all(
        figure.stage == Stage.SUBMIT and "used for nothing else" in figure.split for figure in card.figures
    )
    assert {"curves.json", "holdout.parquet"} <= set(card.files)
    assert (Path(folder) / "curves.json").is_file()


def test_a_model_that_is_not_promoted_is_not_in_use(tmp_path: Path, check_data: CheckData) -> None:
    registry = Registry(tmp_path)
    few = check_data.ended().head(800)
    train_failure(
        few, check_data.known(), registry, DETECTOR, stage=Stage.SUBMIT, budget=QUICK, promote=False
    )
    assert registry.champion("failure", Stage.SUBMIT) is None


def test_a_training_killed_before_its_promotion_leaves_no_version_behind(
    tmp_path: Path, check_data: CheckData
) -> None:
    registry, few = Registry(tmp_path), check_data.ended().head(800)
    versions = [
        train_failure(
            few, check_data.known(), registry, DETECTOR, stage=Stage.SUBMIT, budget=QUICK, promote=promote
        ).version
        for promote in (False, True)  # all that the killed one did not do is the promotion
    ]
    assert (versions, registry.versions("failure")) == (["1", "1"], ["1"])
    assert registry.champion("failure", Stage.SUBMIT) == "1"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("precision_at_least", 0.6),
        ("recall_at_least", 0.9),
        ("alarms_per_day_at_most", 5),
        ("least_cost", 0.5),
    ],
)
def test_each_rule_makes_a_version_that_keeps_it(
    registry: Registry, kept: TrainedFailure, kind: str, value: float
) -> None:
    assert kind in RULES
    rule = ThresholdRule(kind, value)
    new = set_rule(registry, kept.model, rule, parent=kept.version)
    folder, card = registry.open_verified("failure", stage=Stage.SUBMIT)
    assert (card.version, card.parent) == (new.version, kept.version)
    chosen = FailureDetector().load(folder).calibrated.threshold
    assert chosen == new.model.calibrated.threshold
    assert chosen.rule == rule
    assert chosen.met
    table = kept.model.calibrated.table
    if kind == "least_cost":
        assert chosen.wasted + value * chosen.delayed <= min(
            row.wasted + value * row.delayed for row in table
        )
    elif kind == "alarms_per_day_at_most":
        assert chosen.alarms_per_day <= value
    else:
        assert getattr(chosen, kind.partition("_")[0]) >= value


def test_the_version_before_can_be_put_back(registry: Registry, kept: TrainedFailure) -> None:
    set_rule(registry, kept.model, ThresholdRule("recall_at_least", 0.99), parent=kept.version)
    registry.promote("failure", kept.version, why="undone", at=1)
    folder, card = registry.open_verified("failure", stage=Stage.SUBMIT)
    assert card.version == kept.version
    assert FailureDetector().load(folder).calibrated.threshold == kept.model.calibrated.threshold
