"""Splits by time: training never sees what was not known yet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.examples import log
from tocsin.core.errors import ModelError
from tocsin.models.splits import DAY, NEVER, Step, first_last, folds, walk

LOGS = st.lists(
    st.tuples(st.integers(0, 60 * DAY), st.integers(0, 9 * DAY) | st.just(NEVER)), min_size=2, max_size=60
)


def times(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    submit = np.array([s for s, _ in rows], dtype=np.int64)
    known = np.array([NEVER if delay == NEVER else s + delay for s, delay in rows], dtype=np.int64)
    return submit, known


def check(step: Step, submit: np.ndarray, known: np.ndarray) -> None:
    assert (known[step.train] <= step.cut).all()
    assert (submit[step.train] < step.cut).all()
    assert (submit[step.test] >= step.cut).all()
    assert (np.diff(submit[step.train]) >= 0).all()
    assert (np.diff(submit[step.test]) >= 0).all()


@settings(max_examples=100, deadline=None)
@given(
    LOGS,
    st.sampled_from([0.0, 0.2, 0.5, 0.9]),
    st.sampled_from([1, 7, 0.5, 400]),
    st.sampled_from([None, 5, 30]),
)
def test_a_walk_trains_on_what_was_known_and_tests_each_job_once(
    rows: list[tuple[int, int]], first: float, every: float, window: float | None
) -> None:
    submit, known = times(rows)
    steps = list(walk(submit, known, first=first, every_days=every, train_days=window))
    for step in steps:
        check(step, submit, known)
        assert (submit[step.test] < step.cut + every * DAY).all()
        wanted = (known <= step.cut) & (submit < step.cut)
        if window is not None:
            wanted &= submit >= step.cut - window * DAY
        assert sorted(step.train) == np.flatnonzero(wanted).tolist()
    tested = np.concatenate([step.test for step in steps])
    assert sorted(tested) == np.flatnonzero(submit >= steps[0].cut).tolist()
    assert len(tested) >= np.floor(len(rows) * (1 - first))


@settings(max_examples=100, deadline=None)
@given(LOGS, st.integers(1, 5))
def test_folds_follow_each_other_and_know_only_the_past(rows: list[tuple[int, int]], count: int) -> None:
    submit, known = times(rows)
    made = folds(submit, known, count=count)
    for step in made:
        check(step, submit, known)
    tested = np.concatenate([step.test for step in made])
    assert sorted(tested) == np.flatnonzero(submit >= made[0].cut).tolist()
    assert len(made) <= count


@settings(max_examples=50, deadline=None)
@given(LOGS, st.sampled_from([0.2, 0.5, 0.8]))
def test_the_first_share_then_the_rest(rows: list[tuple[int, int]], share: float) -> None:
    submit, known = times(rows)
    step = first_last(submit, known, share=share)
    check(step, submit, known)
    assert sorted(step.test) == np.flatnonzero(submit >= step.cut).tolist()


def test_eighty_percent_is_eighty_percent() -> None:
    submit, known = log(1000)
    step = first_last(submit, np.minimum(known, submit + 60))
    assert len(step.test) == 200
    assert len(step.train) >= 799  # but for a job that ended within the last minute


def test_a_gap_of_ages_makes_no_steps() -> None:
    submit = np.array([0, 10, 20, 10**15])
    assert len(list(walk(submit, submit + 1, first=0.0, every_days=1 / DAY))) == 4


@pytest.mark.parametrize("days", [0, -3])
def test_a_walk_must_go_forward(days: float) -> None:
    with pytest.raises(ModelError, match="cannot step"):
        list(walk(*log(10), every_days=days))


def test_too_few_jobs_and_odd_shares_are_said() -> None:
    with pytest.raises(ModelError, match="at least 2"):
        first_last(np.array([5]), np.array([6]))
    with pytest.raises(ModelError, match="first share"):
        first_last(*log(10), share=1.5)
    with pytest.raises(ModelError, match="known outcomes"):
        first_last(np.array([5, 6]), np.array([6]))
