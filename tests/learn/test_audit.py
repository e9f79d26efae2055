"""The audit: silent where a walk is honest, and loud where one looks ahead."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl
import pytest

from tests.learn.conftest import DETECTOR, request_for, walker
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.failure.shipped import shipped_model
from tocsin.history.replay import Replay
from tocsin.judge.check_data import CheckData
from tocsin.learn import walk as walking
from tocsin.learn.audit import Audit, audit
from tocsin.learn.walk import StepResult, Walk


def test_an_honest_walk_passes(check_data: CheckData, walked: list[StepResult]) -> None:
    progress = []
    found = audit(
        check_data.log, walked, walker(check_data.known), progress=lambda *done: progress.append(done)
    )
    assert found.clean
    assert found.differing == 0
    assert found.example is None
    asked = pl.concat(each.jobs for each in walked).filter(pl.col("submit") <= found.until)
    assert found.compared == asked.height > 500
    assert found.until < check_data.log["submit"].max(), "where nothing comes later, nothing is proven"
    assert progress[-1][0] == progress[-1][1]


def test_shipped_start_blend_and_contests_pass(
    check_data: CheckData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in service: the shipped model first, then models blended with it, each used if it is no worse than the last."""
    monkeypatch.setattr(walking, "FEWEST_FIRST", 200)
    detector = replace(DETECTOR, shipped=shipped_model(Stage.SUBMIT))

    def walk(jobs: pl.DataFrame, start: int | None = None) -> Walk:
        return Walk(jobs, check_data.known(jobs), detector, request_for(every_days=1), start=start)

    walked = list(walk(check_data.log))
    assert walked[0].refused is not None
    assert walked[0].own_weight is None, "the shipped model predicts"
    assert sum(each.own_weight is not None for each in walked[: len(walked) // 2]) >= 2
    assert sum(each.trained for each in walked) >= 3
    assert audit(check_data.log, walked, walk).clean


@pytest.mark.parametrize("stage", [Stage.START, Stage.EARLY])
def test_a_later_stage_is_compared_as_of_its_own_moment(check_data: CheckData, stage: Stage) -> None:
    """A job that was submitted before T and started after it may get another probability."""
    walk = walker(check_data.known, request_for(stage))
    assert audit(check_data.log, list(walk(check_data.log)), walk).clean


class Peeking(Replay):
    """A past that knows a job's own outcome."""

    def features(
        self, jobs: pl.DataFrame, *, stage: Stage, names: Sequence[str] | None = None
    ) -> pl.DataFrame:
        ends = jobs["outcome"].ne(str(Outcome.COMPLETED)).fill_null(True).cast(pl.Float64)
        spread = jobs["job_id"] % 100 / 100  # so that a tree may cut anywhere
        told = super().features(jobs, stage=stage, names=names)
        return told.with_columns((ends + spread).alias("user.failed"))


def test_a_past_that_looks_ahead_is_found(check_data: CheckData) -> None:
    walk = walker(Peeking)
    found = audit(check_data.log, list(walk(check_data.log)), walk)
    assert not found.clean
    assert 0 < found.differing < found.compared
    assert found.example is not None
    assert found.example.startswith("demo:")


def test_a_training_that_looks_ahead_is_found(check_data: CheckData) -> None:
    """Outcomes that count as known at once train steps that were made before them."""
    hasty = check_data.log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then("submit"))
    walked = list(walker(lambda _: check_data.known())(hasty))
    assert not audit(check_data.log, walked, walker(check_data.known)).clean


def test_nothing_compared_is_no_proof() -> None:
    assert not Audit(until=0, compared=0, differing=0, example=None).clean
