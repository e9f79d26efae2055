"""The parameter search: repeatable, bounded, and never worse than its start."""

import time
from typing import Any

import numpy as np
import pytest

from tests.models.examples import log, table
from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.models.engines import engine
from tocsin.models.search import Score, search, search_engine
from tocsin.models.space import Choice, Real, Space, Whole
from tocsin.models.splits import folds

HILL: Space = {"x": Real(-5, 5), "n": Whole(1, 100, log=True), "side": Choice(("left", "right"))}


def height(parameters: dict[str, Any]) -> Score:
    if not parameters:
        return Score(-1000.0)
    wrong_side = parameters["side"] == "left"
    return Score(-((parameters["x"] - 1) ** 2) - abs(parameters["n"] - 10) / 10 - wrong_side, rounds=7)


def test_it_climbs() -> None:
    found = search(height, HILL, budget=Budget(trials=80), seed=0)
    assert found.best.score > -0.5
    assert found.best.parameters["side"] == "right"
    assert found.best.rounds == 7
    assert len(found.trials) == 80


def test_the_same_seed_takes_the_same_way_and_another_a_different_one() -> None:
    once, again, other = (search(height, HILL, budget=Budget(trials=25), seed=s) for s in (1, 1, 2))
    assert once == again
    assert once.trials != other.trials


def test_the_start_is_tried_first_and_nothing_worse_is_returned() -> None:
    found = search(
        lambda parameters: Score(0.0 if parameters.get("x") == 3 else -1.0),
        {"x": Real(-5, 5)},
        budget=Budget(trials=5),
        seed=0,
        start={"x": 3},
    )
    assert found.trials[0].parameters == {"x": 3} == found.best.parameters


def test_it_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    budget = Budget(trials=3, progress=lambda done, of: told.append((done, of)))
    search(height, HILL, budget=budget, seed=0)
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_one_trial_is_the_start_alone() -> None:
    assert [t.parameters for t in search(height, HILL, budget=Budget(trials=1), seed=0).trials] == [{}]


def test_seconds_end_it_after_the_trial_that_runs() -> None:
    def slow(_: dict[str, Any]) -> Score:
        until = time.monotonic() + 0.02
        while time.monotonic() < until:
            pass
        return Score(0.0)

    found = search(slow, HILL, budget=Budget(trials=10_000, seconds=0.2), seed=0)
    assert 1 <= len(found.trials) < 15
    assert len(search(slow, HILL, budget=Budget(trials=9, seconds=0.0), seed=0).trials) == 1


def test_it_is_silent_and_leaves_no_file(
    capfd: pytest.CaptureFixture[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    search(height, HILL, budget=Budget(trials=12), seed=0)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_an_engine_is_searched_over_time_and_repeats() -> None:
    X, y = table(900)
    steps = folds(*log(900), count=2)
    once, again = (
        search_engine(engine("lightgbm"), X, y, steps, budget=Budget(trials=4), seed=3, rounds=40)
        for _ in range(2)
    )
    assert once == again
    assert once.best.score == max(t.score for t in once.trials) > y.mean() + 0.2
    assert 0 < (once.best.rounds or 0) <= 40
    assert set(once.trials[1].parameters) == set(engine("lightgbm").space)
    assert once.to_json()["space"]["num_leaves"]["kind"] == "whole"


def test_a_lower_brier_score_is_better() -> None:
    X, y = table(600)
    found = search_engine(
        engine("lightgbm"), X, y, folds(*log(600)), budget=Budget(trials=3), seed=0, rounds=20, metric="brier"
    )
    assert found.best.score == max(t.score for t in found.trials)
    assert -0.25 < found.best.score < 0


def test_what_cannot_be_searched_is_said() -> None:
    X, _ = table(100)
    with pytest.raises(ModelError, match="both outcomes"):
        search_engine(engine("lightgbm"), X, np.zeros(100), folds(*log(100)), budget=Budget(), seed=0)
    with pytest.raises(ModelError, match="at least one trial"):
        search(height, HILL, budget=Budget(trials=0), seed=0)
    with pytest.raises(ModelError, match="no finite score"):
        search(lambda _: Score(float("nan")), HILL, budget=Budget(), seed=0)
