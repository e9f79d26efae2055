"""A watch of traces with regions that people confirmed: jobs that enter one ring by its name."""

import numpy as np
import polars as pl
import pytest

from tests.kits.simulated_windows import COMPUTES, WAITS, every, windows
from tests.kits.trace_rounds import Lab, trained
from tests.kits.watching import NOON
from tocsin.core.errors import ModelError
from tocsin.store.database import Store
from tocsin.store.home import Home
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.regions import Region, fit_shape


@pytest.fixture(scope="module")
def fitted() -> FittedTraces:
    return trained()


def region(fitted: FittedTraces, name: str, *frames: pl.DataFrame, version: str = "1") -> Region:
    embedding = fitted.cpus.model.score(fitted.cpus.windows(pl.concat(frames))).embedding
    shape = fit_shape(embedding)
    return Region(7, name, version, shape._replace(radius=3 * shape.radius), NOON)


def test_a_job_in_a_region_rings_by_its_name(store: Store, home: Home, fitted: FittedTraces) -> None:
    bad = region(fitted, "bad_io", windows(800, every(20, 400), level=WAITS))
    lab = Lab(store, home.windows, fitted.with_regions([bad], "1"))
    lab.add({"job_id": 1}, {"job_id": 2})
    lab.nodes.computes(1, 0, 400, cpus=(0, 1))
    lab.nodes.computes(2, 0, 200, cpus=(2, 3))
    lab.nodes.computes(2, 201, 400, WAITS, cpus=(2, 3))
    verdicts = lab.run(60, 400)
    assert {verdict.job for verdict in verdicts} == {f"lab:2@{NOON}"}
    kinds = {found.kind: found for verdict in verdicts for found in verdict.findings}
    assert {"high_iowait", "like_bad_io"} <= set(kinds)
    assert kinds["like_bad_io"].text.startswith("like the jobs confirmed as bad_io on ")
    assert kinds["like_bad_io"].evidence[0] == "n1: CPU 2–3"


def test_a_region_rings_even_where_the_model_has_learned_it_as_normal(
    store: Store, home: Home, fitted: FittedTraces
) -> None:
    slow = region(fitted, "slow", windows(800, every(20, 400), level=COMPUTES))
    lab = Lab(store, home.windows, fitted.with_regions([slow], "1"))
    lab.add({"job_id": 1})
    lab.nodes.computes(1, 0, 400)
    [first, *_] = lab.run(60, 400)
    assert [found.kind for found in first.findings] == ["like_slow"]


def test_a_region_of_another_model_is_refused(fitted: FittedTraces) -> None:
    bad = region(fitted, "bad_io", windows(800, every(20, 400), level=WAITS), version="2")
    other = fitted.with_regions([bad], "1")
    kinds = pl.DataFrame({"job": ["x"], "user": ["ann"], "name": ["fit"]})
    with pytest.raises(ModelError, match='"bad_io" belongs to model 2, these windows to model 1'):
        other.scores(windows(800, every(20, 400)), kinds)


def test_without_regions_nothing_changes(fitted: FittedTraces) -> None:
    frame = windows(800, every(20, 400), level=WAITS)
    kinds = pl.DataFrame({"job": frame["job"].unique(), "user": ["ann"], "name": ["fit"]})
    assert fitted.with_regions([], "1").scores(frame, kinds).equals(fitted.scores(frame, kinds))
    assert np.all(fitted.scores(frame, kinds)["unusual"].to_numpy())
