"""Other clusters' experience: from the first job on, beside a cluster's own model, and told where it comes from."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.failure.test_detector import BUDGET, later
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.detector import DETECTOR, FailureDetector
from tocsin.failure.experience import Experience, Layout, blended, named_for, own_weight
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.holdout import Holdout, calibrated
from tocsin.failure.recent_scores import RecentScores
from tocsin.failure.shipped import shipped_model
from tocsin.history.ledger import Ledger
from tocsin.judge.check_data import CheckData
from tocsin.models.calibration import calibrate
from tocsin.models.metrics import measure
from tocsin.models.thresholds import ThresholdRule

STAGES = (Stage.SUBMIT, Stage.START, Stage.EARLY)


@pytest.fixture(scope="module")
def shipped() -> FittedFailure:
    found = shipped_model(Stage.SUBMIT)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def blend(check_data: CheckData, shipped: FittedFailure) -> FittedFailure:
    detector = FailureDetector(shipped=shipped, explainers=False)
    return detector.fit(check_data.ended(), check_data.known(), stage=Stage.SUBMIT, seed=0, budget=BUDGET)


def test_the_first_job_of_a_cluster_gets_a_probability(check_data: CheckData, shipped: FittedFailure) -> None:
    [parts] = shipped.assess(check_data.log.head(1), Ledger(), stage=Stage.SUBMIT)
    assert parts.failure is not None
    assert 0 < parts.failure.probability < 1
    assert parts.failure.basis == "from other clusters' experience; 0 jobs of this cluster seen so far"
    assert "failure.cluster" not in parts.missing


@pytest.mark.parametrize("stage", STAGES)
def test_it_ranks_the_jobs_of_a_cluster_that_it_has_never_seen(check_data: CheckData, stage: Stage) -> None:
    model = shipped_model(stage)
    assert model is not None
    jobs = later(check_data)
    if stage is not Stage.SUBMIT:
        jobs = jobs.filter(pl.col("start").is_not_null(), pl.col("elapsed") > 120)
    p = model.probabilities(jobs, history_features(jobs, check_data.known(), stage=stage))
    assert measure("auc", jobs["outcome"].ne("completed").to_numpy(), p) > 0.6


def test_the_jobs_seen_so_far_are_counted(check_data: CheckData, shipped: FittedFailure) -> None:
    job = later(check_data).tail(1)
    earlier = check_data.log.filter(pl.col("submit") < job["submit"][0]).height
    failure = shipped.explain(job, check_data.known(), stage=Stage.SUBMIT).failure
    assert failure is not None
    assert failure.basis is not None
    assert f"; {earlier:,} jobs of this cluster" in failure.basis
    assert failure.contributions


def test_a_cluster_without_jobs_is_one_reason(check_data: CheckData, shipped: FittedFailure) -> None:
    job, nothing = later(check_data).head(1), check_data.known(check_data.log.clear())
    parts, [plain] = (
        shipped.explain(job, nothing, stage=Stage.SUBMIT),
        shipped.assess(job, nothing, stage=Stage.SUBMIT),
    )
    assert parts.failure is not None
    assert plain.failure is not None
    assert parts.failure.probability == plain.failure.probability
    texts = [reason.text for reason in parts.failure.contributions]
    about_nothing = [text for text in texts if re.match("no (earlier )?jobs? ", text)]
    assert about_nothing == ["no job on this cluster has ended yet"]
    assert len(texts) > 1, "the request is a reason, too"


def test_a_user_without_jobs_is_one_reason(check_data: CheckData, shipped: FittedFailure) -> None:
    job = later(check_data).tail(1).with_columns(user=pl.lit("newcomer"))
    failure = shipped.explain(job, check_data.known(), stage=Stage.SUBMIT).failure
    assert failure is not None
    texts = [reason.text for reason in failure.contributions]
    assert [text for text in texts if "of this user" in text] == ["no job of this user has ended yet"]


def test_the_target_of_an_archive_is_its_own(check_data: CheckData, shipped: FittedFailure) -> None:
    jobs = later(check_data).with_columns(source=pl.lit("swf"))
    assert shipped.target is Target.FAILED
    parts = shipped.assess(jobs, check_data.known(), stage=Stage.SUBMIT)
    assert {each.failure.target for each in parts if each.failure} == {Target.UNSUCCESSFUL}
    assert named_for(["user.failed_last10"], Target.UNSUCCESSFUL) == ("user.unsuccessful_last10",)


def test_a_blend_is_no_worse_than_its_parts(
    check_data: CheckData, shipped: FittedFailure, blend: FittedFailure
) -> None:
    jobs = later(check_data)
    history = check_data.known().features(jobs, stage=Stage.SUBMIT)
    y = jobs["outcome"].ne("completed").to_numpy()
    own = replace(blend, experience=None)
    parts = [measure("auc", y, model.probabilities(jobs, history)) for model in (own, shipped)]
    assert measure("auc", y, blend.probabilities(jobs, history)) > max(parts) - 0.02


def test_a_blend_is_explained_by_both(check_data: CheckData, blend: FittedFailure) -> None:
    jobs, past = later(check_data), check_data.known()
    [parts] = blend.assess(jobs.head(1), past, stage=Stage.SUBMIT)
    failure = blend.explain(jobs.head(1), past, stage=Stage.SUBMIT).failure
    assert failure is not None
    assert parts.failure is not None
    assert failure.probability == pytest.approx(parts.failure.probability, abs=1e-12)
    assert failure.basis is None, "its own jobs taught it as well"
    rest = failure.probability - sum(reason.effect for reason in failure.contributions)
    assert 0 <= rest <= 1


def test_features_laid_out_together_are_those_of_each_model(
    check_data: CheckData, blend: FittedFailure
) -> None:
    assert blend.experience is not None
    jobs = later(check_data)
    history = check_data.known().features(jobs, stage=Stage.SUBMIT)
    rows = Layout(blend.columns, blend.experience.columns).rows(jobs, history)
    assert rows.carried is not None
    np.testing.assert_array_equal(rows.own, blend.columns.matrix(jobs, history))
    np.testing.assert_array_equal(rows.carried, blend.experience.columns.matrix(jobs, history))


def test_what_depends_on_a_cluster_does_not_carry_over(blend: FittedFailure) -> None:
    assert blend.experience is not None
    columns = replace(blend.experience.columns, names=("req_cpus", "hour"))
    with pytest.raises(ModelError, match='"hour" does not carry over'):
        Experience(columns, blend.experience.booster)


def test_a_blend_says_the_same_after_loading_and_in_a_service(
    check_data: CheckData, blend: FittedFailure, tmp_path: Path
) -> None:
    blend.save(tmp_path)
    loaded = DETECTOR.load(tmp_path)
    jobs = later(check_data).head(40)
    ledger = Ledger()
    ledger.learn(check_data.log)
    replayed = blend.assess(jobs, check_data.known(), stage=Stage.SUBMIT)
    assert loaded.assess(jobs, check_data.known(), stage=Stage.SUBMIT) == replayed
    assert loaded.assess(jobs, ledger, stage=Stage.SUBMIT) == replayed


def test_the_better_model_weighs_more() -> None:
    random = np.random.default_rng(0)
    failed = (random.random(2000) < 0.2).astype(float)
    good = np.clip(0.2 + 0.4 * failed + random.normal(0, 0.15, 2000), 0.01, 0.99)
    noise = random.uniform(0.01, 0.99, 2000)
    assert own_weight(good, noise, failed) > 0.7
    assert own_weight(noise, good, failed) < 0.3


def test_few_jobs_decide_little() -> None:
    failed = np.array([0.0, 1.0, 0.0, 1.0])
    right = np.array([0.1, 0.9, 0.2, 0.8])
    assert own_weight(right, 1 - right, failed) == pytest.approx(0.5, abs=0.01)
    assert own_weight(right, right, np.zeros(4)) == own_weight(right, 1 - right, np.zeros(4))
    many = np.tile(failed, 1000)
    assert own_weight(np.tile(right, 1000), np.tile(right, 1000), many) > 0.7, "both rank alike"


def test_own_models_of_different_times_are_not_ranked_together() -> None:
    """Each part is ranked well by its own model, but their probabilities are of different heights."""
    random = np.random.default_rng(0)
    failed = (random.random(4000) < 0.3).astype(float)
    good = 0.1 * failed + random.uniform(0, 0.08, 4000) + np.repeat([0.1, 0.7, 0.3, 0.5], 1000)
    fair = np.clip(0.3 + 0.1 * failed + random.normal(0, 0.1, 4000), 0.01, 0.99)
    assert measure("auc", failed, good) < measure("auc", failed, fair)
    assert own_weight(good, fair, failed) > 0.8


WEEK = 7 * 86400


def recent(*good: bool, jobs: int = 1000) -> RecentScores:
    """For each week, the last one last: whether the own models ranked its jobs well; others always do, a little less."""
    random = np.random.default_rng(1)
    count = jobs * len(good)
    failed = (random.random(count) < 0.3).astype(float)
    right = np.clip(0.2 + 0.4 * failed + random.normal(0, 0.15, count), 0.01, 0.99)
    fair = np.clip(0.2 + 0.4 * failed + random.normal(0, 0.25, count), 0.01, 0.99)
    own = np.where(np.repeat(good, jobs), right, 0.8 - right)
    submit = np.arange(count) * (WEEK // jobs)
    return RecentScores(np.clip(own, 0.01, 0.99), fair, failed, submit, submit + 60)


def holdout_scores(count: int = 4000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]  # floats
    """Both rank alike, so that the weight is the usual one."""
    failed = np.tile([0.0, 1.0], count // 2)
    return failed * 0.5 + 0.2, failed * 0.5 + 0.2, failed


def test_the_weight_follows_how_the_models_in_use_ranked_the_last_weeks() -> None:
    usual = own_weight(*holdout_scores())
    assert usual > 0.8
    assert own_weight(*holdout_scores(), recent(True, True, True, True)) > 0.6
    assert own_weight(*holdout_scores(), recent(True, True, True, False)) < 0.4, (
        "they failed in the last week"
    )
    later = own_weight(*holdout_scores(), recent(False, True, True, True))
    assert later > own_weight(*holdout_scores(), recent(True, True, True, False)), "it was long ago"


def test_few_recent_jobs_move_the_weight_little() -> None:
    usual = own_weight(*holdout_scores())
    few = own_weight(*holdout_scores(), recent(False, jobs=4))
    assert usual - 0.25 <= few
    assert own_weight(*holdout_scores(), recent(False, jobs=1000)) < few


def test_recent_scores_are_those_of_four_weeks() -> None:
    first, second = recent(True, True, True), recent(False, False)
    moved = replace(second, submit=second.submit + 3 * WEEK, known_at=second.known_at + 3 * WEEK)
    both = first.followed_by(moved).latest()
    assert both.known_until == moved.known_until
    assert both.known_at.min() > both.known_until - 4 * WEEK
    assert len(both.own) == pytest.approx(4000, abs=2)
    assert sum(len(failed) for _, _, failed in both.weeks()) == len(both.own)
    last = next(iter(both.weeks()))
    assert last[0] == pytest.approx(moved.own[-len(last[0]) :])


def test_a_model_keeps_its_recent_scores_and_says_the_same_after_loading(
    check_data: CheckData, blend: FittedFailure, tmp_path: Path
) -> None:
    weighed = blend.weighed_by(recent(False, False))
    assert weighed.calibrated.own_weight != blend.calibrated.own_weight
    weighed.save(tmp_path)
    loaded = DETECTOR.load(tmp_path)
    assert loaded.recent is not None
    assert loaded.recent.frame().equals(recent(False, False).frame())
    jobs = later(check_data).head(40)
    assert loaded.assess(jobs, check_data.known(), stage=Stage.SUBMIT) == weighed.assess(
        jobs, check_data.known(), stage=Stage.SUBMIT
    )
    rule = ThresholdRule("precision_at_least", 0.9)
    assert loaded.with_rule(rule).calibrated.own_weight == weighed.calibrated.own_weight
    again = loaded.weighed_by(None)
    assert again.calibrated == blend.calibrated, "without them, as its training left it"
    recent(True).frame().with_columns(own=None).write_parquet(tmp_path / "recent.parquet")
    with pytest.raises(ModelError, match="rows with gaps"):
        DETECTOR.load(tmp_path)
    (tmp_path / "recent.parquet").write_bytes(b"PAR1")
    with pytest.raises(ModelError, match=r"recent\.parquet cannot be read"):
        DETECTOR.load(tmp_path)


def test_equal_probabilities_stay_as_they_are() -> None:
    p = np.array([0.001, 0.3, 0.9])
    assert blended(p, p, 0.4) == pytest.approx(p)
    assert blended(p, np.full(3, 0.5), 1.0) == pytest.approx(p)


def test_calibration_does_not_jump_while_there_is_little_evidence() -> None:
    """Two weeks of the same cluster, by chance too low and too high: their curves are close to each other."""
    random = np.random.default_rng(0)

    def curve(height: float, jobs: int) -> float:
        scores = random.uniform(0.05, 0.95, jobs)
        failed = (random.random(jobs) < np.clip(scores + height, 0, 1)).astype(float)
        every, hours = np.ones(jobs, dtype=bool), np.ones(jobs)
        holdout = Holdout(scores, failed, np.arange(jobs) * 600, hours, every, every)
        found = calibrated(holdout, rule=ThresholdRule("precision_at_least", 0.8)).calibrator
        return float(found.apply(np.array([0.5]))[0])

    assert curve(0.2, 500) - curve(-0.2, 500) < 0.15
    assert curve(0.2, 40_000) - curve(-0.2, 40_000) > 0.3


def test_the_kind_of_curve_does_not_change_from_week_to_week() -> None:
    """In steps, the shares of failures are fitted best by steps, but next week they may lie elsewhere."""
    random = np.random.default_rng(0)
    scores = random.uniform(0.05, 0.95, 40_000)
    failed = (random.random(40_000) < np.where(scores < 0.6, 0.1, 0.8)).astype(float)
    assert calibrate(scores, failed).calibrator.kind == "isotonic"
    every, hours = np.ones(40_000, dtype=bool), np.ones(40_000)
    holdout = Holdout(scores, failed, np.arange(40_000) * 60, hours, every, every)
    found = calibrated(holdout, rule=ThresholdRule("precision_at_least", 0.8)).calibrator
    assert found.kind == "logistic"
    assert (np.diff(found.apply(np.linspace(0.05, 0.95, 50))) > 0).all(), "a higher score is a higher risk"


def test_no_job_alarms_at_a_probability_at_which_most_jobs_ended_well() -> None:
    """One failure among ten good jobs would still leave the precision above what is promised."""
    scores = np.r_[np.full(90, 0.9), np.full(11, 0.15), np.full(300, 0.02)]
    failed = np.r_[np.ones(90), 1.0, np.zeros(310)]
    order = np.random.default_rng(0).permutation(len(scores))
    every, hours = np.ones(len(scores), dtype=bool), np.ones(len(scores))
    holdout = Holdout(scores[order], failed[order], np.arange(len(scores)) * 3600, hours, every, every)
    found = calibrated(holdout, rule=ThresholdRule("precision_at_least", 0.8))
    good, bad = found.calibrator.apply(np.array([0.15, 0.9]))
    assert good < found.threshold.value <= bad
    assert found.threshold.alarms == 90


def test_where_nearly_all_jobs_fail_those_that_end_well_still_raise_no_alarm() -> None:
    scores = np.r_[np.full(380, 0.9), np.full(20, 0.05)]
    failed = np.r_[np.ones(380), np.zeros(20)]
    order = np.random.default_rng(0).permutation(len(scores))
    every, hours = np.ones(len(scores), dtype=bool), np.ones(len(scores))
    holdout = Holdout(scores[order], failed[order], np.arange(len(scores)) * 3600, hours, every, every)
    found = calibrated(holdout, rule=ThresholdRule("precision_at_least", 0.8))
    assert found.threshold.alarms == 380
    assert found.calibrator.apply(np.array([0.05]))[0] < found.threshold.value
