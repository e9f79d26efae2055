"""Live precision and recall: on jobs that nobody touched, with intervals and counts, and missing where it is luck."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kits.job_frames import SUBMIT, frame
from tests.kits.live_verdicts import DAY, JOBS, NOW, THRESHOLD, give, guesses, jobs, key
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.judge.actions import is_control
from tocsin.learn.live_figures import Live, LiveFigures
from tocsin.store import scores
from tocsin.store.database import Store, open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scores import Score

SHARE = 0.1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


def figures(store: Store, version: str | None = None) -> LiveFigures:
    live = Live(store, "lab", now=NOW, share=SHARE)
    [found] = [each for each in live.figures() if each.version == version]
    return found


def test_precision_and_recall_of_the_alarms_whose_outcome_is_known(store: Store) -> None:
    def change(n: int, row: dict[str, Any]) -> dict[str, Any]:
        if n in (3, 5, 7):
            return {**row, "outcome": "cancelled"}
        return {**row, "outcome": None, "end": None, "known_at": None} if n in (9, 11) else row

    rows = jobs(change=change)
    p = guesses(rows, 0.2)
    give(store, rows, p)
    found = figures(store)
    assert (found.cluster, found.stage, found.target) == ("lab", Stage.SUBMIT, "failed")
    assert (found.since, found.until) == (rows[0]["submit"], rows[-1]["submit"])
    assert found.jobs + sum(found.left_out.values()) == JOBS
    assert (found.left_out["other_outcome"], found.left_out["intervened"], found.control) == (3, 0, False)
    assert found.left_out["waiting"] >= 2
    counted = [
        (row, each) for row, each in zip(rows, p, strict=True) if row["outcome"] in ("failed", "completed")
    ]
    counted = counted[: found.jobs]  # the last ones wait until slow jobs of their time could have ended
    alarms = [row["outcome"] == "failed" for row, each in counted if each >= THRESHOLD]
    bad = [each >= THRESHOLD for row, each in counted if row["outcome"] == "failed"]
    assert (found.alarms, found.hits, found.failed) == (len(alarms), sum(alarms), len(bad))
    for measured, value in ((found.precision, np.mean(alarms)), (found.recall, np.mean(bad))):
        assert measured is not None
        assert measured.value == pytest.approx(value)
        assert 0 <= measured.low <= measured.value <= measured.high <= 1
    assert found.auc is not None
    assert found.auc.low < found.auc.value < found.auc.high
    assert found.missing == {}
    assert figures(store, "1").precision == found.precision


def test_alarms_that_are_all_right_still_have_an_interval(store: Store) -> None:
    rows = jobs()
    give(store, rows, guesses(rows, 1.0))
    found = figures(store)
    assert found.precision is not None
    assert (found.precision.value, found.precision.high) == (1.0, 1.0)
    assert 0.97 < found.precision.low < 1.0


def test_where_tocsin_acted_only_the_control_share_counts(store: Store) -> None:
    rows = jobs()
    p = guesses(rows, 0.2)
    upsert(store, frame(*rows))
    # it stopped what rang, but for the control share; what it stopped never failed
    held = [
        {**row, "intervened": True, "outcome": "completed"}
        if each >= THRESHOLD and not is_control(key(row), SHARE)
        else row
        for row, each in zip(rows, p, strict=True)
    ]
    give(store, held, p)
    upsert(store, frame(*held))
    found = figures(store)
    alone = [(row, each) for row, each in zip(rows, p, strict=True) if is_control(key(row), SHARE)]
    assert found.control
    assert found.left_out["intervened"] > 200
    assert found.left_out["not_control"] > 700
    assert 0 < found.jobs <= len(alone)
    alarms = [row["outcome"] == "failed" for row, each in alone[: found.jobs] if each >= THRESHOLD]
    assert (found.alarms, found.hits) == (len(alarms), sum(alarms))


def test_too_few_are_missing_with_the_reason(store: Store) -> None:
    rows = jobs(60)
    give(store, rows, guesses(rows, 0.2))
    found = figures(store)
    assert (found.precision, found.recall, found.auc) == (None, None, None)
    assert set(found.missing) == {"precision", "recall", "auc"}
    assert found.missing["recall"] == f"{found.failed} failed jobs have a known outcome; 20 are needed"


def test_many_jobs_of_one_user_on_one_day_are_no_evidence(store: Store) -> None:
    rows = jobs(200, lambda n, row: {**row, "user": "ann", "submit": SUBMIT + n, "known_at": SUBMIT + DAY})
    give(store, rows, guesses(rows, 0.2))
    assert figures(store).missing["precision"].endswith("users and days; 10 are needed")


def test_a_task_has_the_verdict_of_its_array(store: Store) -> None:
    rows = jobs()
    give(store, rows[:-1], guesses(rows[:-1], 0.2))
    before = figures(store)
    array = {**rows[-1], "job_id": 5000, "submit": SUBMIT}
    waiting = {**array, "array": "0-39", "start": None, "end": None, "outcome": None, "known_at": None}
    give(store, [waiting], [0.9])
    upsert(store, frame(*({**array, "task": n, "outcome": "failed"} for n in range(40))))
    found = figures(store)
    assert (found.alarms - before.alarms, found.hits - before.hits) == (40, 40)


def test_without_a_verdict_there_is_nothing(store: Store) -> None:
    upsert(store, frame(*jobs(50)))
    assert list(Live(store, "lab", now=NOW, share=SHARE).figures()) == []


@pytest.mark.parametrize(("skill", "promotes"), [(0.3, True), (0.05, False)])
def test_a_challenger_is_compared_on_the_jobs_that_both_scored(
    store: Store, skill: float, promotes: bool
) -> None:
    rows = jobs()
    give(store, rows, guesses(rows, 0.2))
    beside = [
        Score(key(row), Stage.SUBMIT, "failure", "2", row["submit"], each, THRESHOLD)
        for row, each in zip(rows[200:], guesses(rows[200:], skill, seed=2), strict=True)
    ]
    scores.keep(store, beside)
    live = Live(store, "lab", now=NOW, share=SHARE)
    result = live.compared("failure", Stage.SUBMIT, "1", "2")
    assert result.promotes is promotes
    assert result.low <= result.gain <= result.high
    assert 900 < result.rows <= JOBS - 200
    assert (result.gain > 0) is promotes
    own = figures(store, "2")
    assert own.jobs <= JOBS - 200
    assert own.auc is not None
    with pytest.raises(ModelError, match="no live job has been scored by both 1 and 7"):
        live.compared("failure", Stage.SUBMIT, "1", "7")
    with pytest.raises(ModelError, match="by its contest only"):
        live.compared("traces", Stage.RUNNING, "1", "2")


def test_a_comparison_needs_a_hundred_jobs(store: Store) -> None:
    rows = jobs(300)
    give(store, rows, guesses(rows, 0.2))
    scores.keep(
        store,
        [Score(key(row), Stage.SUBMIT, "failure", "2", row["submit"], 0.5, THRESHOLD) for row in rows[:50]],
    )
    with pytest.raises(ModelError, match="50 live jobs that both scored have a known outcome, 13 of them"):
        Live(store, "lab", now=NOW, share=SHARE).compared("failure", Stage.SUBMIT, "1", "2")
