"""Profiles find the kinds of jobs in a log and name them."""

import doctest
import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from tocsin.core.errors import ModelError
from tocsin.core.frames import conform
from tocsin.core.outcomes import Target
from tocsin.core.units import UNLIMITED
from tocsin.judge.check_data import demo_check_data
from tocsin.profiles import columns
from tocsin.profiles.clusters import knee
from tocsin.profiles.columns import COLUMNS, Kind, table
from tocsin.profiles.profiles import FEWEST, Profiles
from tocsin.profiles.tables import correlations, tables

GB = 2**30


def log(rows: int = 600, seed: int = 0, **changed: Any) -> pl.DataFrame:
    """Two kinds: many users' one-CPU jobs of minutes, and one user's jobs of four nodes and half a day that fail."""
    random = np.random.default_rng(seed)
    large = np.arange(rows) % 3 == 0
    submit = 1_700_000_000 + np.arange(rows) * 900
    run = np.where(large, random.integers(36_000, 43_000, rows), random.integers(500, 900, rows))
    columns: dict[str, Any] = {
        "cluster": ["lab"] * rows,
        "job_id": np.arange(rows),
        "submit": submit,
        "user": np.where(large, "ada", np.char.add("u", (np.arange(rows) % 40).astype(str))),
        "req_cpus": np.where(large, 128, 1),
        "req_nodes": np.where(large, 4, 1),
        "req_memory": np.where(large, 64 * GB, random.integers(1, 4, rows) * GB),
        "time_limit": np.where(large, 86_400, 3600),
        "start": submit + random.integers(0, 600, rows),
        "elapsed": run,
        "outcome": np.where(large & (random.random(rows) < 0.5), "timeout", "completed"),
        "source": ["sacct"] * rows,
    }
    frame = pl.DataFrame(columns | changed)
    return conform(
        frame.with_columns(end=pl.col("start") + pl.col("elapsed"), known_at=pl.col("start") + 99_999)
    )


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return log()


@pytest.fixture(scope="module")
def request_profiles(jobs: pl.DataFrame) -> Profiles:
    return Profiles.fit(jobs)


@pytest.mark.parametrize("method", ["mixture", "kmeans"])
def test_two_kinds_of_jobs_are_separated_and_named(jobs: pl.DataFrame, method: Any) -> None:
    found = Profiles.fit(jobs, method=method)
    names = found.assign(jobs)
    assert names.filter(jobs["user"] == "ada").n_unique() == 1
    assert not set(names.filter(jobs["user"] == "ada")) & set(names.filter(jobs["user"] != "ada"))
    assert found.profiles[-1].name == "long 4-node jobs of one user, 11 h of 24 h requested"
    small = found.assign(jobs.filter(pl.col("req_cpus") == 1))[0]
    assert small.startswith("short single-CPU jobs of many users, ")
    assert small.endswith("min of 1 h requested") or "GB per node" in small


def test_no_two_profiles_have_the_same_name() -> None:
    log = demo_check_data().log
    for found in (Profiles.fit(log), Profiles.fit(log, "usage")):
        assert len({profile.name for profile in found.profiles}) == len(found.profiles) > 1


def test_a_request_profile_uses_nothing_that_is_known_later(
    jobs: pl.DataFrame, request_profiles: Profiles
) -> None:
    early = jobs.with_columns(
        pl.lit(None, dtype=jobs.schema[name]).alias(name)
        for name in ("start", "end", "elapsed", "outcome", "state", "alloc_cpus", "max_memory", "known_at")
    )
    assert request_profiles.assign(early).equals(request_profiles.assign(jobs))
    assert np.array_equal(Profiles.fit(early).clusters.centres, request_profiles.clusters.centres)


def test_a_usage_profile_needs_a_finished_job(jobs: pl.DataFrame) -> None:
    found = Profiles.fit(jobs, "usage")
    living = jobs.head(2).with_columns(pl.lit(None, dtype=pl.String).alias("outcome"))
    assert found.assign(living).to_list() == [None, None]
    assert found.assign(jobs).null_count() == 0


@pytest.mark.parametrize("kind", ["request", "usage"])
def test_one_job_has_the_same_values_as_among_many(jobs: pl.DataFrame, kind: Kind) -> None:
    odd = [None, 0, -1, 1, 86_400, UNLIMITED - 1, UNLIMITED]
    fields = ("req_cpus", "req_nodes", "req_memory", "req_gpus", "time_limit")
    asked = jobs.head(len(odd)).with_columns(pl.Series(name, odd, jobs.schema[name]) for name in fields)
    alone = [table(asked.slice(row, 1), COLUMNS[kind]) for row in range(asked.height)]
    assert np.array_equal(np.concatenate(alone), table(asked, COLUMNS[kind]), equal_nan=True)


def test_a_column_that_never_varies_is_left_out() -> None:
    found = Profiles.fit(log(req_gpus=[0] * 600))
    assert found.left_out["requested GPUs"] == "the same in every job: 0"
    assert "gpus" not in found.names


def test_the_same_jobs_give_the_same_profiles(jobs: pl.DataFrame, request_profiles: Profiles) -> None:
    assert json.dumps(Profiles.fit(jobs).to_json()) == json.dumps(request_profiles.to_json())


@pytest.mark.parametrize("method", ["mixture", "kmeans"])
def test_profiles_survive_their_json(jobs: pl.DataFrame, method: Any) -> None:
    found = Profiles.fit(jobs, method=method)
    again = Profiles.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)))
    assert again.assign(jobs).equals(found.assign(jobs))
    assert again.to_json() == found.to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "mood"},
        {"scale": [0.0, 0.0, 0.0, 0.0]},
        {"centre": ["x"]},
        {"profiles": []},
        {"clusters": {"method": "pickle"}},
        {"columns": []},
    ],
)
def test_malformed_json_is_refused(request_profiles: Profiles, change: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="is not a set of profiles"):
        Profiles.from_json(request_profiles.to_json() | change)


def test_assignment_agrees_with_scikit_learn(jobs: pl.DataFrame) -> None:
    from sklearn.mixture import GaussianMixture  # type: ignore[import-untyped]  # it ships no types

    from tocsin.profiles.clusters import fit_clusters

    points = np.random.default_rng(0).normal(size=(500, 3)) * [1, 2, 0.5]
    points[:200] += 3
    ours = fit_clusters(points, 3, "mixture", 0)
    theirs = GaussianMixture(3, reg_covar=0.02, random_state=0).fit(points)
    assert np.array_equal(ours.assign(points), theirs.predict(points))


def test_a_log_without_memory_and_with_gaps_still_has_profiles() -> None:
    bare = log(req_memory=[None] * 600, req_nodes=[None] * 600)
    gaps = bare.with_columns(time_limit=pl.when(pl.col("job_id") % 4 > 0).then("time_limit"))
    found = Profiles.fit(gaps)
    assert found.left_out["requested memory per node"] == "known for 0 of 600 jobs"
    assert set(found.names) == {"cpus", "time"}
    assert found.assign(gaps).null_count() == 0


def test_jobs_that_are_all_alike_are_one_profile() -> None:
    same = log(req_cpus=[1] * 600, req_nodes=[1] * 600, req_memory=[GB] * 600, time_limit=[3600] * 600)
    found = Profiles.fit(same)
    assert len(found.profiles) == 1
    assert found.profiles[0].jobs == 600
    assert Profiles.from_json(found.to_json()).assign(same).n_unique() == 1


def test_too_few_jobs_or_jobs_without_request_fields_are_refused() -> None:
    with pytest.raises(ModelError, match=f"49 jobs are too few for profiles; {FEWEST} are needed"):
        Profiles.fit(log(49))
    bare = log(**dict.fromkeys(("req_cpus", "req_nodes", "req_memory", "time_limit"), [None] * 600))
    with pytest.raises(ModelError, match="no request fields"):
        Profiles.fit(bare)


def test_the_tables_count_every_job_and_every_user(jobs: pl.DataFrame, request_profiles: Profiles) -> None:
    found = tables(jobs, request_profiles.numbers(jobs), Target.FAILED)
    assert sum(row["jobs"] for row in found["resources"]) == jobs.height
    assert found["resources"][-1]["cpus_mean"] == 128
    assert found["durations"][-1] | {"profile": 0} == {"profile": 0, "short": 0, "medium": 0, "long": 200}
    assert found["activity"][-1]["frequent"] == 1
    assert sum(row["failed"] for row in found["outcomes"]) == jobs["outcome"].eq("timeout").sum()
    assert found["outcomes"][-1]["by_outcome"]["timeout"] == found["outcomes"][-1]["failed"]
    assert sum(row["memory"] + row["balanced"] + row["compute"] for row in found["types"]) == jobs.height


def test_a_log_without_memory_has_no_table_of_types(request_profiles: Profiles) -> None:
    bare = log(req_memory=[None] * 600)
    assert tables(bare, request_profiles.numbers(bare), Target.FAILED)["types"] == []


def test_the_correlation_map_is_symmetric_and_finds_what_fails(
    jobs: pl.DataFrame, request_profiles: Profiles
) -> None:
    names, values = correlations(jobs, request_profiles.numbers(jobs), Target.FAILED)
    assert np.allclose(values, values.T, equal_nan=True)
    assert names[0] == "failed"
    assert values[0, names.index("CPUs")] > 0.5
    assert "GPUs" not in names


def test_the_knee_is_farthest_below_the_chord() -> None:
    assert knee([1, 2, 3, 4, 5, 6], np.array([100.0, 60, 20, 18, 16, 14])) == 3
    assert knee([1, 2, 3], np.array([5.0, 5, 5])) == 1
    assert knee([1], np.array([5.0])) == 1


def test_the_examples_in_the_docstrings_hold() -> None:
    found = doctest.testmod(columns)
    assert found.attempted
    assert not found.failed
