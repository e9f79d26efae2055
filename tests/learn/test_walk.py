"""A walk through time: every job once, by a model that knew nothing of it, whatever the log is like."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.learn.conftest import DETECTOR, QUICK, request_for
from tocsin.core.errors import ModelError
from tocsin.core.fields import KEY
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.history.replay import Replay
from tocsin.judge.check_data import CheckData
from tocsin.learn import walk as walking
from tocsin.learn.audit import audit
from tocsin.learn.walk import StepResult, Walk, WalkRequest
from tocsin.sources.swf import SwfFile


def test_every_job_after_the_first_fifth_is_predicted_once(
    ground: CheckData, walked: list[StepResult]
) -> None:
    told = pl.concat(each.jobs for each in walked)
    first = walked[0].step.cut
    assert told.select(KEY).is_unique().all()
    after = ground.log.filter(pl.col("submit") >= first).sort("submit", "job_id", "task", nulls_last=False)
    assert told.equals(after)
    before = ground.log.sort("submit").head(ground.log.height // 5)
    assert before["submit"].max() <= first, (
        "jobs of the same instant stay together, so a few more may be asked about"
    )
    probabilities = np.concatenate([each.probability for each in walked])
    assert len(probabilities) == told.height
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_a_job_without_an_outcome_is_predicted_as_well(ground: CheckData, walked: list[StepResult]) -> None:
    running = ground.log.filter(pl.col("outcome").is_null())
    assert running.height
    told = pl.concat(each.jobs for each in walked)
    assert told.join(running, on=list(KEY), how="semi", nulls_equal=True).height == running.height


def test_a_step_trains_on_what_was_known_and_asks_about_what_came_later(ground: CheckData) -> None:
    walk = Walk(ground.log, ground.past(), DETECTOR, request_for())
    assert len(walk.steps) >= 3
    for step in walk.steps:
        train, test = walk.jobs[step.train], walk.jobs[step.test]
        assert train["known_at"].max() <= step.cut
        assert train["submit"].max() < step.cut <= test["submit"].min()
        assert test["submit"].max() < step.cut + 2 * 86400


def test_days_of_training_and_days_between_trainings_are_kept_to(ground: CheckData) -> None:
    walk = Walk(ground.log, ground.past(), DETECTOR, request_for(train_days=1.5, every_days=0.5))
    assert len(walk.steps) > 8
    for step in walk.steps:
        assert walk.jobs[step.train]["submit"].min() >= step.cut - 1.5 * 86400
        assert (step.cut - walk.start) % 43200 == 0


def test_the_first_training_searches_and_the_next_ones_refit(
    ground: CheckData, walked: list[StepResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each.searched for each in walked] == [True, *[False] * (len(walked) - 1)]
    monkeypatch.setattr(walking, "SEARCH_EVERY", 1)
    steps = iter(Walk(ground.log, ground.past(), DETECTOR, request_for()))
    assert [next(steps).searched, next(steps).searched] == [True, True]


def test_the_same_walk_comes_to_the_same_bits(ground: CheckData, walked: list[StepResult]) -> None:
    first = next(iter(Walk(ground.log, ground.past(), DETECTOR, request_for())))
    assert first.probability.tobytes() == walked[0].probability.tobytes()


@pytest.mark.parametrize(("share", "change"), [(0.0, Outcome.COMPLETED), (1.0, Outcome.FAILED)])
def test_a_log_with_one_class_is_told_the_share_so_far(
    ground: CheckData, share: float, change: Outcome
) -> None:
    log = ground.log.with_columns(outcome=pl.when(pl.col("outcome").is_not_null()).then(pl.lit(str(change))))
    for step in Walk(log, ground.past(log), DETECTOR, request_for()):
        assert step.refused is not None
        assert "jobs are failed; a model needs at least 10 that are and as many that are not" in step.refused
        assert (step.probability == share).all()
        assert not (step.probability >= step.threshold).any(), "what was not learned must not ring"


def test_a_walk_that_cannot_be_walked_is_refused(ground: CheckData) -> None:
    few = ground.log.head(50)
    with pytest.raises(ModelError, match="50 of 50 jobs came to submit; a walk needs at least 100"):
        Walk(few, ground.past(few), DETECTOR, request_for())
    unstarted = ground.log.with_columns(start=pl.lit(None, pl.Int64))
    with pytest.raises(ModelError, match="jobs came to start"):
        Walk(unstarted, ground.past(unstarted), DETECTOR, request_for(Stage.START))
    with pytest.raises(ModelError, match="a walk needs a target"):
        Walk(ground.log, ground.past(), FailureDetector(), request_for())


def test_another_future_changes_no_bit_of_a_walk_through_a_real_log(
    data: Path, known_log: Callable[[Path], pl.DataFrame]
) -> None:
    log = known_log(data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    detector = FailureDetector(target=Target.UNSUCCESSFUL)
    request = WalkRequest(every_days=60, budget=QUICK)
    walked = []
    for step in Walk(log, Replay(log), detector, request):
        walked.append(step)
        if len(walked) == 3:  # the rest is walked by the benchmark
            break
    found = audit(log, walked, detector, request, Replay)
    assert found.clean
    assert found.compared > 5_000


@pytest.fixture
def known_log() -> Callable[[Path], pl.DataFrame]:
    """A log of which each outcome is known a minute after the end."""

    def read(path: Path) -> pl.DataFrame:
        log = pl.concat(batch.jobs for batch in SwfFile(path).batches())
        return log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + 60))

    return read
