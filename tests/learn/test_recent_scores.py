"""What models in use gave to the jobs since their training: each job once, before its outcome was known."""

from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tests.learn.conftest import DETECTOR, QUICK, request_for
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.model_card import model_card
from tocsin.failure.recent_scores import RecentScores
from tocsin.failure.shipped import shipped_model
from tocsin.judge.check_data import CheckData
from tocsin.learn import walk as walking
from tocsin.learn.contest import Champion, Night
from tocsin.learn.contest_failure import FailureMatch
from tocsin.learn.held_back import counted, hold_back
from tocsin.learn.recent_scores import recent_scores
from tocsin.learn.walk import Walk

if TYPE_CHECKING:
    from tocsin.store.database import Store

BLENDING = replace(DETECTOR, shipped=shipped_model(Stage.SUBMIT), explainers=False)


@pytest.fixture(scope="module")
def labelled(check_data: CheckData) -> pl.DataFrame:
    ended = check_data.ended().filter(pl.col("known_at").is_not_null())
    return ended.filter(pl.Series(counted(ended, Target.FAILED))).sort("submit", "job_id", "task")


@pytest.fixture(scope="module")
def cuts(labelled: pl.DataFrame) -> list[int]:
    return [int(labelled["known_at"].quantile(share) or 0) for share in (0.6, 0.8)]


@pytest.fixture(scope="module")
def model(check_data: CheckData, labelled: pl.DataFrame, cuts: list[int]) -> FittedFailure:
    past = labelled.filter(pl.col("known_at") <= cuts[0])
    return BLENDING.fit(past, check_data.known(), stage=Stage.SUBMIT, seed=0, budget=QUICK)


def test_each_outcome_is_scored_once_by_a_model_that_did_not_learn_from_it(
    check_data: CheckData, labelled: pl.DataFrame, model: FittedFailure, cuts: list[int]
) -> None:
    first = recent_scores(model, labelled.filter(pl.col("known_at") <= cuts[1]), check_data.known())
    assert first is not None
    assert first.submit.min() > model.window.last
    assert first.known_until <= cuts[1]
    following = model.weighed_by(first)
    second = recent_scores(following, labelled, check_data.known())
    assert second is not None
    new = labelled.filter(pl.col("known_at") > first.known_until)
    assert len(second.own) == len(first.own) + new.height, "the demo has less than four weeks"
    assert second.own[: len(first.own)].tobytes() == first.own.tobytes()
    assert second.submit[len(first.own) :].tolist() == new["submit"].to_list()
    assert second.failed[len(first.own) :].mean() == new["outcome"].ne("completed").mean()
    again = recent_scores(model.weighed_by(second), labelled, check_data.known())
    assert again is second, "nothing new is known"


def test_a_model_without_other_clusters_experience_has_none(
    check_data: CheckData, labelled: pl.DataFrame, model: FittedFailure
) -> None:
    alone = replace(model, experience=None)
    assert recent_scores(alone, labelled, check_data.known()) is None
    assert alone.weighed_by(None) is alone


def test_models_in_use_hand_their_scores_on_in_a_walk(
    check_data: CheckData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walking, "FEWEST_FIRST", 200)
    models: list[FittedFailure] = []
    walk = Walk(
        check_data.log,
        check_data.known(),
        BLENDING,
        request_for(every_days=1),
        asked=lambda jobs, known, fitted: models.append(fitted),
    )
    steps = list(walk)
    own = [(step, fitted) for step, fitted in zip(steps, models, strict=True) if fitted.experience]
    followed = [(step, fitted) for step, fitted in own if fitted.recent is not None]
    assert followed
    for step, fitted in followed:
        assert fitted.recent is not None
        assert fitted.recent.known_until <= step.step.cut, "nothing that became known later"
    assert own[0][1].recent is None, "nothing was in use before the first model"


def test_a_contest_weighs_the_challenger_by_what_was_known_before_its_days(
    check_data: CheckData, labelled: pl.DataFrame, model: FittedFailure, tmp_path: Path
) -> None:
    folders = {name: tmp_path / name for name in ("champion", "challenger")}
    for folder in folders.values():
        folder.mkdir()
    model.save(folders["champion"])
    match = FailureMatch(
        champion=Champion(
            detector="failure",
            stage=Stage.SUBMIT,
            cluster=None,
            folder=folders["champion"],
            card=model_card(model, created=0),
        ),
        night=Night(store=cast("Store", None), now=0, holdback_days=0.5),  # nothing is read from it
        model=model,
        known=check_data.known(),
        labelled=labelled,
        back=hold_back(labelled, days=0.5, trained_until=model.window.last, target=Target.FAILED),
    )
    trained, _ = match.retrain()
    trained(folders["challenger"])
    challenger = DETECTOR.load(folders["challenger"])
    assert challenger.recent is not None
    assert challenger.recent.known_until == labelled["known_at"].max()
    cut = match.back.cut

    def misled(rows: NDArray[np.bool_]) -> FittedFailure:
        """The challenger, with scores at these rows that speak for other clusters' experience."""
        recent = challenger.recent
        assert recent is not None
        wrong = np.clip(1 - recent.failed, 0.1, 0.9)
        own, others = (np.where(rows, p, q) for p, q in ((wrong, recent.own), (1 - wrong, recent.others)))
        changed = RecentScores(own, others, recent.failed, recent.submit, recent.known_at)
        many = (np.tile(getattr(changed, each.name), 20) for each in fields(RecentScores))
        return challenger.weighed_by(RecentScores(*many))

    def figure(model: FittedFailure, name: str) -> float:
        (tmp_path / name).mkdir()
        model.save(tmp_path / name)
        return match.compare(folders["champion"], tmp_path / name)(np.ones(match.back.held.height))[1]

    late = challenger.recent.known_at > cut
    assert 0 < late.sum() < len(late)
    nowhere = figure(misled(np.zeros_like(late)), "nowhere")
    assert figure(misled(late), "late") == nowhere, "a contest must not know how its own days ended"
    assert figure(misled(~late), "earlier") != nowhere, "the champion is weighed by earlier scores, too"
