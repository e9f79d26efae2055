"""What a user of the detector notices: it is right, it says why, and it refuses in sentences."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.columns import Columns
from tocsin.failure.detector import DETECTOR, FailureDetector
from tocsin.failure.feature_sentences import sentence
from tocsin.failure.features import FEATURES
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.model_card import model_card
from tocsin.history.ledger import Ledger
from tocsin.history.replay import Replay
from tocsin.judge.check_data import CheckData
from tocsin.models.cards import read_card
from tocsin.models.metrics import measure
from tocsin.models.registry import Registry

BUDGET = Budget(trials=1)


def later(check_data: CheckData) -> pl.DataFrame:
    labels = [*(str(o) for o in ("failed", "timeout", "out_of_memory", "node_fail")), "completed"]
    return check_data.log.filter(pl.col("submit") > check_data.cut, pl.col("outcome").is_in(labels))


def test_it_foresees_the_failures_of_the_next_days(check_data: CheckData, model: FittedFailure) -> None:
    jobs = later(check_data)
    p = model.probabilities(jobs, check_data.known().features(jobs, stage=Stage.SUBMIT))
    failed = jobs["outcome"].ne("completed").to_numpy()
    assert measure("auc", failed, p) > 0.75
    assert p[failed].mean() > 2 * p[~failed].mean()
    assert abs(p.mean() - failed.mean()) < 0.2


def test_a_job_rings_from_the_threshold_on(check_data: CheckData, model: FittedFailure) -> None:
    answers = model.assess(later(check_data), check_data.known(), stage=Stage.SUBMIT)
    for parts in answers:
        assert parts.failure is not None
        assert parts.failure.will_fail == (parts.failure.probability >= model.calibrated.threshold.value)
        assert [each.kind for each in parts.findings].count("will_fail") == parts.failure.will_fail
    ringing = [parts for parts in answers if parts.failure and parts.failure.will_fail]
    assert 0 < len(ringing) < len(answers)
    finding = ringing[0].findings[0]
    assert finding.text.startswith("the job is likely to fail (risk ")
    assert finding.score == ringing[0].failure.probability  # type: ignore[union-attr]  # told above


def test_an_explanation_names_what_its_user_can_check(check_data: CheckData, model: FittedFailure) -> None:
    jobs, past = later(check_data), check_data.known()
    p = model.probabilities(jobs, past.features(jobs, stage=Stage.SUBMIT))
    job = jobs[int(np.argmax(p))]
    failure = model.explain(job, past, stage=Stage.SUBMIT).failure
    assert failure is not None
    assert failure.probability == pytest.approx(float(p.max()), abs=1e-12)
    effects = [abs(reason.effect) for reason in failure.contributions]
    assert effects == sorted(effects, reverse=True)
    assert effects[0] > 0
    rest = failure.probability - sum(reason.effect for reason in failure.contributions)
    assert 0 <= rest <= 1, "the steps lead from another probability to this one"
    assert any(" jobs " in reason.text for reason in failure.contributions)
    families = [FEATURES[reason.feature].family for reason in failure.contributions]
    assert len(set(families)) == len(families)


@pytest.mark.parametrize(
    ("feature", "value", "text"),
    [
        ("name.failed_last10", 0.4, "4 of the last 10 jobs of this user with this name failed"),
        ("name.completed", 0, "no jobs of this user with this name completed"),
        ("name.completed", 1, "1 job of this user with this name completed"),
        (
            "name.memory_most",
            9.5 * 2**30,
            "the completed jobs of this user with this name used at most 9.5G of memory",
        ),
        ("twin.failed_last10", 1, "the last job of this user with the same name and request failed"),
        (
            "twin.unsuccessful_last3",
            0,
            "the last job of this user with the same name and request was successful",
        ),
        ("common_partition", 0.25, "25% of the training's jobs have its partition"),
        (
            "name.unsuccessful_last40",
            0.5,
            "6 of the last 12 jobs of this user with this name were unsuccessful",
        ),
        (
            "name.out_of_memory",
            0.25,
            "3 of 12 earlier jobs of this user with this name ran out of memory",
        ),
        ("user.streak", 3, "the last 3 jobs of this user were all unsuccessful"),
        ("user.streak", -1, "the last job of this user completed"),
        (
            "limit/name.elapsed_most",
            0.5,
            "its time limit is 0.5 times the longest run time of completed jobs of this user with this name",
        ),
        ("twin.last", 3, "the last job of this user with the same name and request ended as out of memory"),
        ("name.memory_used", 0.975, "the latest jobs of this user with this name used 98% of their memory"),
        ("name.failed", float("nan"), "no earlier job of this user with this name is known"),
        ("user.running", 1, "1 job of this user is running"),
        ("user.submitted_hour", 2, "2 jobs of this user were submitted in the last hour"),
        ("time_limit", 5400, "its time limit is 01:30:00"),
        ("weekday", 7, "it was submitted on a Sunday"),
        ("requeue", 0, "it may not be requeued"),
        ("req_nodes", 1, "it requests 1 node"),
    ],
)
def test_a_feature_is_a_sentence(feature: str, value: float, text: str) -> None:
    assert sentence(feature, value, {"name.ended": 12, "user.ended": 12, "twin.ended": 1}) == text


def test_every_feature_has_a_sentence() -> None:
    for name in FEATURES:
        for value in (0.0, 1.0, float("nan"), float("inf") if name == "granted" else 2.0):
            assert len(sentence(name, value, {}).split()) > 1


def test_quick_failures_of_the_last_hours_do_not_teach(check_data: CheckData, model: FittedFailure) -> None:
    """What is known of the last jobs is not how they end, but how the quick ones among them do."""
    last = int(check_data.ended()["submit"].max())  # type: ignore[arg-type]  # an instant
    assert model.window.last < last - 3600


def test_causes_share_the_probability(check_data: CheckData, model: FittedFailure) -> None:
    parts = model.explain(later(check_data).head(1), check_data.known(), stage=Stage.SUBMIT)
    assert parts.failure is not None
    assert {"failed", "timeout", "out_of_memory"} <= parts.failure.causes.keys()
    assert sum(parts.failure.causes.values()) == pytest.approx(parts.failure.probability)


def test_a_job_of_another_cluster_is_told_that_the_model_does_not_know_it(
    check_data: CheckData, model: FittedFailure
) -> None:
    own = later(check_data).head(1)
    strange = own.with_columns(cluster=pl.lit("elsewhere"))
    assert "failure.cluster" not in model.assess(own, check_data.known(), stage=Stage.SUBMIT)[0].missing
    for parts in (
        model.assess(strange, check_data.known(), stage=Stage.SUBMIT)[0],
        model.explain(strange, check_data.known(), stage=Stage.SUBMIT),
    ):
        assert parts.failure is not None
        assert 'may be wrong for "elsewhere"' in parts.missing["failure.cluster"]


def test_an_unknown_user_gets_an_answer_and_a_sentence(check_data: CheckData, model: FittedFailure) -> None:
    job = later(check_data).head(1).with_columns(user=pl.lit("zaphod"))
    parts = model.assess(job, check_data.known(), stage=Stage.SUBMIT)[0]
    assert parts.failure is not None
    assert 0 <= parts.failure.probability <= 1
    assert 'no earlier job of user "zaphod" is known' in parts.missing["failure.history"]


def test_an_empty_history_gets_an_answer(check_data: CheckData, model: FittedFailure) -> None:
    parts = model.assess(later(check_data).head(1), Ledger(), stage=Stage.SUBMIT)[0]
    assert parts.failure is not None
    assert "failure.history" in parts.missing


def test_a_service_and_a_replay_say_the_same(check_data: CheckData, model: FittedFailure) -> None:
    jobs = later(check_data).head(40)
    ledger = Ledger()
    ledger.learn(check_data.log)
    live, replayed = (model.assess(jobs, past, stage=Stage.SUBMIT) for past in (ledger, check_data.known()))
    assert live == replayed


def test_nonsense_in_a_request_gets_an_answer(check_data: CheckData, model: FittedFailure) -> None:
    job = later(check_data).head(1)
    for name in ("req_cpus", "req_nodes", "time_limit", "req_memory", "req_gpus"):
        for value in (0, -1, 2**62):
            odd = job.with_columns(pl.lit(value, pl.Int64).alias(name))
            failure = model.explain(odd, check_data.known(), stage=Stage.SUBMIT).failure
            assert failure is not None
            assert 0 <= failure.probability <= 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (pl.lit("completed"), "0 of .* jobs are failed; training needs at least 10"),
        (pl.lit("failed"), "as many that are not"),
        (pl.lit("unknown"), "0 of .* have a known outcome .* import a longer log"),
    ],
)
def test_a_log_that_cannot_teach_is_refused(check_data: CheckData, change: pl.Expr, sentence: str) -> None:
    jobs = check_data.ended().with_columns(outcome=change)
    with pytest.raises(ModelError, match=sentence):
        DETECTOR.fit(jobs, Replay(jobs), stage=Stage.SUBMIT, seed=0, budget=BUDGET)


def test_too_few_jobs_are_refused(check_data: CheckData) -> None:
    jobs = check_data.ended().head(50)
    with pytest.raises(ModelError, match="at least 100"):
        DETECTOR.fit(jobs, Replay(jobs), stage=Stage.SUBMIT, seed=0, budget=BUDGET)


def test_jobs_that_we_stopped_teach_nothing(check_data: CheckData) -> None:
    jobs = check_data.ended().with_columns(intervened=pl.col("outcome") != "completed")
    with pytest.raises(ModelError, match="0 of"):
        DETECTOR.fit(jobs, check_data.known(), stage=Stage.SUBMIT, seed=0, budget=BUDGET)


def test_the_target_follows_the_source(check_data: CheckData) -> None:
    jobs = check_data.ended()
    archive = DETECTOR.fit(
        jobs.with_columns(source=pl.lit("swf")), check_data.known(), stage=Stage.SUBMIT, seed=0, budget=BUDGET
    )
    assert archive.target is Target.UNSUCCESSFUL
    assert archive.causes["cancelled"] > 0


def test_a_model_answers_at_its_own_stage_only(check_data: CheckData, model: FittedFailure) -> None:
    with pytest.raises(ModelError, match="for submit, not for start"):
        model.assess(later(check_data).head(1), check_data.known(), stage=Stage.START)


def test_a_job_that_waits_has_no_verdict_at_start(check_data: CheckData) -> None:
    fitted = check_data.fitted(DETECTOR, Stage.START)
    job = later(check_data).head(1).with_columns(start=pl.lit(None, pl.Int64))
    parts = fitted.assess(job, check_data.known(), stage=Stage.START)[0]
    assert parts.failure is None
    assert "has not reached this stage" in parts.missing["failure"]


def test_a_zone_that_is_none_is_refused(check_data: CheckData) -> None:
    with pytest.raises(ModelError, match="Mars/Olympus"):
        FailureDetector(zone="Mars/Olympus").fit(
            check_data.ended(), check_data.known(), stage=Stage.SUBMIT, seed=0, budget=BUDGET
        )


def test_hours_are_those_of_the_cluster(check_data: CheckData) -> None:
    jobs = check_data.log.head(1)
    history = check_data.known().features(jobs, stage=Stage.SUBMIT)
    hours = [
        Columns(Stage.SUBMIT, zone, ("hour",), {}, {}).matrix(jobs, history).item()
        for zone in ("UTC", "Asia/Tokyo")
    ]
    assert (hours[1] - hours[0]) % 24 == pytest.approx(9)


def test_a_short_training_has_no_seasons(model: FittedFailure) -> None:
    assert not {"week", "month", "quarter"} & set(model.columns.names)


def test_it_is_kept_in_the_registry_with_its_card(tmp_path: Path, model: FittedFailure) -> None:
    registry = Registry(tmp_path)
    version = registry.add("failure", model.save, model_card(model, created=1_800_000_000))
    folder = tmp_path / "failure" / version
    card = read_card((folder / "card.json").read_bytes(), "card.json")
    assert card.target == "failed"
    assert [figure.name for figure in card.figures][:2] == ["accuracy", "precision"]
    assert card.thresholds[0]["rule"]["kind"] == "precision_at_least"
    assert DETECTOR.load(folder).columns == model.columns


@pytest.mark.parametrize(
    "break_it",
    [
        lambda document: document.update(version=1),
        lambda document: document["calibrated"].pop("threshold"),
        lambda document: document["columns"]["names"].append("horoscope"),
        lambda document: document["calibrated"].update(calibrator={"kind": "beta", "numbers": [-1.0]}),
        lambda document: document.update(engine="oracle"),
        lambda document: document["plan"].pop("rounds"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path: Path, model: FittedFailure, break_it: object) -> None:
    model.save(tmp_path)
    document = json.loads((tmp_path / "failure.json").read_text())
    break_it(document)  # type: ignore[operator]  # a function of the list above
    (tmp_path / "failure.json").write_text(json.dumps(document))
    with pytest.raises(ModelError):
        DETECTOR.load(tmp_path)
