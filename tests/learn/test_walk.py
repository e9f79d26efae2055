"""A walk through time: every job once, by a model that knew nothing of it, whatever the log is like."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.learn.conftest import DETECTOR, QUICK, request_for, walker
from tocsin.core.errors import ModelError
from tocsin.core.fields import KEY
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS
from tocsin.failure.detector import FailureDetector
from tocsin.failure.findings import WILL_FAIL
from tocsin.failure.fitted import FittedFailure
from tocsin.history.replay import Replay
from tocsin.judge.answers import as_known
from tocsin.judge.check_data import CheckData
from tocsin.learn import walk as walking
from tocsin.learn.alarms import Rules
from tocsin.learn.audit import audit
from tocsin.learn.held_back import counted, hold_back
from tocsin.learn.train_failure import train_failure
from tocsin.learn.walk import StepResult, Walk, WalkRequest
from tocsin.limits.detector import DETECTOR as LIMITS
from tocsin.limits.detector import Limits
from tocsin.models.registry import Registry
from tocsin.sources.swf import SwfFile


def test_every_job_after_the_first_fifth_is_predicted_once(
    check_data: CheckData, walked: list[StepResult]
) -> None:
    told = pl.concat(each.jobs for each in walked)
    first = walked[0].step.cut
    assert told.select(KEY).is_unique().all()
    after = check_data.log.filter(pl.col("submit") >= first).sort(
        "submit", "job_id", "task", nulls_last=False
    )
    assert told.equals(after)
    before = check_data.log.sort("submit").head(check_data.log.height // 5)
    assert before["submit"].max() <= first, (
        "jobs of the same instant stay together, so a few more may be asked about"
    )
    probabilities = np.concatenate([each.probability for each in walked])
    assert len(probabilities) == told.height
    assert ((probabilities >= 0) & (probabilities <= 1)).all()


def test_a_job_without_an_outcome_is_predicted_as_well(
    check_data: CheckData, walked: list[StepResult]
) -> None:
    running = check_data.log.filter(pl.col("outcome").is_null())
    assert running.height
    told = pl.concat(each.jobs for each in walked)
    assert told.join(running, on=list(KEY), how="semi", nulls_equal=True).height == running.height


def test_a_step_trains_on_what_was_known_and_asks_about_what_came_later(check_data: CheckData) -> None:
    walk = Walk(check_data.log, check_data.known(), DETECTOR, request_for())
    assert len(walk.steps) >= 3
    for step in walk.steps:
        train, test = walk.jobs[step.train], walk.jobs[step.test]
        assert train["known_at"].max() <= step.cut
        assert train["submit"].max() < step.cut <= test["submit"].min()
        assert test["submit"].max() < step.cut + 2 * 86400


def test_days_of_training_and_days_between_trainings_are_kept_to(check_data: CheckData) -> None:
    walk = Walk(check_data.log, check_data.known(), DETECTOR, request_for(train_days=1.5, every_days=0.5))
    assert len(walk.steps) > 8
    for step in walk.steps:
        assert walk.jobs[step.train]["submit"].min() >= step.cut - 1.5 * 86400
        assert (step.cut - walk.start) % 43200 == 0


def test_the_first_training_searches_and_the_next_ones_refit(
    check_data: CheckData, walked: list[StepResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [each.searched for each in walked] == [True, *[False] * (len(walked) - 1)]
    monkeypatch.setattr(walking, "SEARCH_EVERY", 1)
    steps = iter(Walk(check_data.log, check_data.known(), DETECTOR, request_for()))
    assert [next(steps).searched, next(steps).searched] == [True, True]


def test_a_worse_model_does_not_follow_a_better_one(
    check_data: CheckData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in service: what a new model would replace stays in use, with its threshold."""
    fit, models = FailureDetector.fit, []

    def ruined(self: FailureDetector, *jobs: object, **options: object) -> FittedFailure:
        found = fit(self, *jobs, **options)  # type: ignore[arg-type]  # handed on
        if models:
            worse = replace(found.calibrated, calibrator=Upside(), own_weight=None)
            found = replace(found, calibrated=worse)
        models.append(found)
        return found

    monkeypatch.setattr(FailureDetector, "fit", ruined)
    walked = list(Walk(check_data.log, check_data.known(), DETECTOR, request_for()))
    assert len(models) > 1
    assert walked[0].kept is None
    for later in walked[1:]:
        assert "against" in (later.kept or "")
    second = models[0].assess(as_known(walked[1].jobs, Stage.SUBMIT), check_data.known(), stage=Stage.SUBMIT)
    assert [part.failure.probability for part in second if part.failure] == walked[1].probability.tolist()


class Upside:
    """Turns every ranking around."""

    def apply(
        self, p: np.ndarray[tuple[int], np.dtype[np.float64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return 1 - p


def test_a_small_cluster_holds_back_more_days(check_data: CheckData) -> None:
    ended = check_data.ended().filter(pl.col("known_at").is_not_null()).sort("submit")
    jobs = ended.filter(pl.Series(counted(ended, Target.FAILED)))
    few = jobs.gather_every(3)
    first = int(few["submit"][100])
    narrow = few.filter(pl.col("submit") > int(few["known_at"].max()) - 86400 // 2).height  # type: ignore[operator]  # an instant
    back = hold_back(few, days=0.5, trained_until=first, target=Target.FAILED)
    assert narrow < 100 <= back.held.height, "half a day has too few jobs"
    assert back.past["known_at"].max() <= back.cut < back.held["submit"].min()
    with pytest.raises(ModelError, match="nothing new to train on yet"):
        hold_back(few, days=1, trained_until=int(few["submit"][-1]), target=Target.FAILED)
    with pytest.raises(
        ModelError, match=r"too few jobs are held back: .* a contest needs 100, 10 of each kind"
    ):
        hold_back(few.tail(150), days=0.01, trained_until=0, target=Target.FAILED)


def test_the_same_walk_comes_to_the_same_bits(check_data: CheckData, walked: list[StepResult]) -> None:
    first = next(iter(walker(check_data.known)(check_data.log)))
    assert first.probability.tobytes() == walked[0].probability.tobytes()
    assert first.bound.tobytes() == walked[0].bound.tobytes()


def test_a_step_predicts_what_a_trained_model_in_use_does(
    check_data: CheckData, walked: list[StepResult], tmp_path: Path
) -> None:
    """Train on the same jobs into a registry, load the champion, and ask it about the same jobs."""
    step, registry = walked[0], Registry(tmp_path)
    train = walker(check_data.known)(check_data.log).jobs[step.step.train]
    train_failure(train, check_data.known(), registry, DETECTOR, stage=Stage.SUBMIT, budget=QUICK)
    folder, _ = registry.open_verified("failure", stage=Stage.SUBMIT)
    visible = as_known(step.jobs, Stage.SUBMIT)
    parts = DETECTOR.load(folder).assess(visible, check_data.known(), stage=Stage.SUBMIT)
    assert [part.failure.probability for part in parts if part.failure] == step.probability.tolist()
    kinds = [{finding.kind for finding in part.findings if finding.level in ALARMS} for part in parts]
    assert [WILL_FAIL in each for each in kinds] == step.alarms["model"].tolist()
    assert [bool(each - {WILL_FAIL}) for each in kinds] == step.alarms["shortages"].tolist()
    runtimes = [part.resources.runtime_seconds for part in parts if part.resources]
    assert [each.p95 for each in runtimes if each] == step.bound.tolist()


def test_rules_alarm_beside_the_model(check_data: CheckData, walked: list[StepResult]) -> None:
    """The demo cluster has a machine, so `limits` has all of its evidence."""
    limits = np.concatenate([each.alarms["limits"] for each in walked])
    jobs = pl.concat(each.jobs for each in walked)
    parts = Limits().fit(jobs, check_data.known(), stage=Stage.SUBMIT, seed=0, budget=QUICK)
    found = parts.assess(as_known(jobs, Stage.SUBMIT), check_data.known(), stage=Stage.SUBMIT)
    assert limits.tolist() == [bool(part.findings) for part in found]
    assert not any(each.missing for each in walked)
    known = check_data.known()
    too_large = as_known(jobs.with_columns(req_memory=pl.lit(2**60)), Stage.SUBMIT)
    assert (
        Rules({"limits": Limits()}, known, Stage.SUBMIT)
        .alarms(too_large, known, Stage.SUBMIT)["limits"]
        .all()
    )


@pytest.mark.parametrize(("share", "change"), [(0.0, Outcome.COMPLETED), (1.0, Outcome.FAILED)])
def test_a_log_with_one_class_predicts_the_share_so_far(
    check_data: CheckData, share: float, change: Outcome
) -> None:
    log = check_data.log.with_columns(
        outcome=pl.when(pl.col("outcome").is_not_null()).then(pl.lit(str(change)))
    )
    for step in Walk(log, check_data.known(log), DETECTOR, request_for()):
        assert step.refused is not None
        assert "jobs are failed; training needs at least 10 that are and as many that are not" in step.refused
        assert (step.probability == share).all()
        assert not step.alarms["model"].any(), "without a model there is no alarm by it"


def test_a_walk_that_cannot_be_walked_is_refused(check_data: CheckData) -> None:
    few = check_data.log.head(50)
    with pytest.raises(ModelError, match="50 of 50 jobs reached submit; a back-test needs at least 100"):
        Walk(few, check_data.known(few), DETECTOR, request_for())
    unstarted = check_data.log.with_columns(start=pl.lit(None, pl.Int64))
    with pytest.raises(ModelError, match="jobs reached start"):
        Walk(unstarted, check_data.known(unstarted), DETECTOR, request_for(Stage.START))
    with pytest.raises(ModelError, match="a back-test needs a target"):
        Walk(check_data.log, check_data.known(), FailureDetector(), request_for())


def test_another_future_changes_no_bit_of_a_walk_through_a_real_log(
    data: Path, known_log: Callable[[Path], pl.DataFrame]
) -> None:
    log = known_log(data / "swf" / "KTH-SP2-1996-2.1-cln.swf.gz")
    detector = FailureDetector(target=Target.UNSUCCESSFUL)
    request = WalkRequest(every_days=60, budget=QUICK)

    def walk(jobs: pl.DataFrame, start: int | None = None) -> Walk:
        return Walk(jobs, Replay(jobs), detector, request, rules={LIMITS.name: LIMITS}, start=start)

    walked = []
    for step in walk(log):
        walked.append(step)
        if len(walked) == 3:  # the rest is walked by the benchmark
            break
    found = audit(log, walked, walk)
    assert found.clean
    assert found.compared > 5_000
    assert {source: int(flags.sum()) > 0 for source, flags in walked[1].alarms.items()}["model"]
    assert "limits" in walked[1].missing, "a log says nothing of nodes and partitions"


@pytest.fixture
def known_log() -> Callable[[Path], pl.DataFrame]:
    """A log of which each outcome is known a minute after the end."""

    def read(path: Path) -> pl.DataFrame:
        log = pl.concat(batch.jobs for batch in SwfFile(path).batches())
        return log.with_columns(known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.col("end") + 60))

    return read
