"""Counters become rates, and a counter that begins again is no negative rate."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.sources.trace_rates import POINTS, rates


def points(*values: tuple[float, float], series: int = 0) -> pl.DataFrame:
    return pl.DataFrame([(series, at, value) for at, value in values], schema=POINTS, orient="row")


def test_growth_and_seconds_since_the_point_before() -> None:
    found = rates(pl.concat([points((1, 10), (2, 13), (4, 20)), points((1, 5), (2, 5), series=1)]))
    assert found.points["delta"].to_list() == [None, 3, 7, None, 0]
    assert found.points["seconds"].to_list() == [None, 1, 2, None, 1]
    assert found.resets == 0


def test_a_reset_is_counted_and_gives_no_rate() -> None:
    found = rates(points((1, 10), (2, 3), (3, 5)))
    assert found.points["delta"].to_list() == [None, None, 2]
    assert found.resets == 1


def test_a_counter_that_may_step_back_stands_still_instead() -> None:
    found = rates(points((1, 10), (2, 9.9), (3, 11)), backward=True)
    assert found.points["delta"].to_list() == pytest.approx([None, 0, 1.1])
    assert found.resets == 0


def test_after_a_long_gap_there_is_no_rate() -> None:
    assert rates(points((1, 10), (12, 20))).points["delta"].to_list() == [None, None]
    assert rates(points((1, 10), (12, 20)), step=5).points["delta"].to_list() == [None, 10]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**6)), max_size=40),
    st.sets(st.integers(1, 39), max_size=4),
    st.randoms(use_true_random=False),
)
def test_rates_are_never_negative_and_add_up_between_resets(
    growth: list[tuple[int, int]], restarts: set[int], random: object
) -> None:
    """What a machine counted, with restarts, in any order and with repeats."""
    value, expected, rows, resets = 0, 0, [], 0
    for at, (_, more) in enumerate(growth):
        fell = at in restarts and more < value
        value = more if at in restarts else value + more
        resets += fell
        if at and not fell:
            expected += value - rows[-1][1]
        rows.append((float(at), float(value)))
    mixed = [*rows, *rows[:3]]
    random.shuffle(mixed)  # type: ignore[attr-defined]
    found = rates(points(*mixed))
    delta = found.points["delta"].drop_nulls()
    assert (delta >= 0).all()
    assert delta.sum() == expected
    assert found.resets == resets
