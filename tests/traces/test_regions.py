"""Regions confirmed as bad: what lies inside, what does not, and what cannot be compared."""

import numpy as np
import pytest

from tocsin.core.errors import InputError, ModelError
from tocsin.traces.regions import MOST_OTHERS, QUANTILE, Region, Shape, fit_shape, regions_entered

RANDOM = np.random.default_rng(0)
BAD = RANDOM.normal(5, 0.1, (200, 8))
NORMAL = RANDOM.normal(0, 0.3, (500, 8))


def region(name: str, shape: Shape, version: str = "3", number: int = 1) -> Region:
    return Region(number, name, version, shape, 1_790_000_000)


def test_a_region_holds_the_stated_share_of_its_own_windows_and_none_of_the_others() -> None:
    shape = fit_shape(BAD)
    assert shape.holds(BAD).mean() == pytest.approx(QUANTILE, abs=0.01)
    assert not shape.holds(NORMAL).any()


def test_a_region_reaches_halfway_to_other_jobs_so_that_the_next_bad_job_may_differ() -> None:
    shape = fit_shape(BAD, NORMAL)
    assert shape.holds(BAD + 1.0).all()
    assert not fit_shape(BAD).holds(BAD + 1.0).any()
    assert not shape.holds(NORMAL).any()


def test_windows_are_counted_by_the_name_of_the_region_they_enter() -> None:
    two = [
        region("bad_io", fit_shape(BAD)),
        region("bad_io", fit_shape(BAD + 3.0), number=2),
        region("leak", fit_shape(-BAD), number=3),
    ]
    job = np.concatenate([np.full((12, 8), 5.0), np.zeros((2, 8)), np.full((1, 8), 8.0)])
    [entered] = regions_entered(job, two, version="3")
    assert (entered.name, entered.count, len(job)) == ("bad_io", 13, 15)
    assert [each.number for each in entered.regions] == [1, 2]
    assert entered.inside.tolist() == [True] * 12 + [False, False, True]
    assert regions_entered(NORMAL, two, version="3") == []


def test_a_region_of_another_version_of_the_model_is_never_compared() -> None:
    with pytest.raises(ModelError, match='"bad_io" belongs to model 3, these windows to model 4'):
        regions_entered(BAD, [region("bad_io", fit_shape(BAD))], version="4")


def test_a_region_shrinks_until_it_holds_few_windows_of_other_jobs() -> None:
    others = np.concatenate([NORMAL, RANDOM.normal(5.15, 0.1, (50, 8))])
    shape = fit_shape(BAD, others)
    assert shape.radius < fit_shape(BAD).radius
    assert shape.holds(others).mean() <= MOST_OTHERS


def test_windows_that_look_like_those_of_other_jobs_make_no_region() -> None:
    with pytest.raises(InputError, match="also match normal jobs"):
        fit_shape(BAD, RANDOM.normal(5, 0.1, (500, 8)))


def test_few_windows_make_no_region() -> None:
    with pytest.raises(InputError, match="9 windows are too few for a region; 10 are needed"):
        fit_shape(BAD[:9])
