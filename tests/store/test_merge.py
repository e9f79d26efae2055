"""What becomes of a job that is told of more than once."""

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.errors import InputError
from tocsin.core.fields import FIELDS, KEY, Part
from tocsin.core.frames import SCHEMA
from tocsin.store import jobs
from tocsin.store.database import Store
from tocsin.store.jobs import Counts, Filter, upsert

PENDING = {"state": "PENDING", "name": "train", "time_limit": 3600, "source": "rest", "request_final": False}
RUNNING = {"state": "RUNNING", "start": SUBMIT + 10, "node_list": "n1", "source": "rest"}
ENDED = {
    "state": "FAILED",
    "outcome": "failed",
    "start": SUBMIT + 10,
    "end": SUBMIT + 100,
    "elapsed": 90,
    "time_limit": 7200,
    "source": "sacct",
    "request_final": True,
}


def only(store: Store) -> dict[str, Any]:
    return jobs.load(store).row(0, named=True) if jobs.load(store).height == 1 else {}


def test_a_job_that_lives_and_ends_is_one_job(store: Store) -> None:
    assert upsert(store, frame(PENDING)) == Counts(new=1)
    assert upsert(store, frame(RUNNING)) == Counts(updated=1)
    assert upsert(store, frame(ENDED)) == Counts(updated=1)
    assert upsert(store, frame(ENDED)) == Counts(unchanged=1)
    job = only(store)
    assert (job["state"], job["node_list"], job["elapsed"]) == ("FAILED", "n1", 90)


def test_the_request_stays_as_first_seen_and_gaps_are_filled(store: Store) -> None:
    upsert(store, frame(PENDING))
    upsert(store, frame({**ENDED, "name": "renamed", "account": "physics"}))
    job = only(store)
    assert (job["name"], job["time_limit"], job["account"]) == ("train", 3600, "physics")
    assert (job["source"], job["request_final"]) == ("rest", False)


def test_an_ended_job_never_lives_again(store: Store) -> None:
    upsert(store, frame(ENDED))
    assert upsert(store, frame({**RUNNING, "node_list": "n9", "account": "late"})) == Counts(unchanged=1)
    job = only(store)
    assert (job["outcome"], job["node_list"], job["account"]) == ("failed", None, None)


def test_a_requeue_is_a_job_of_its_own(store: Store) -> None:
    upsert(store, frame(ENDED))
    assert upsert(store, frame({**PENDING, "submit": SUBMIT + 200})).new == 1


def test_an_outcome_is_known_a_lag_after_the_end_unless_the_record_says_when(store: Store) -> None:
    told = {**ENDED, "job_id": 2, "known_at": SUBMIT + 105}
    upsert(store, frame({**ENDED, "job_id": 1}, told, {**RUNNING, "job_id": 3}), lag=60)
    assert jobs.load(store).sort("job_id")["known_at"].to_list() == [SUBMIT + 160, SUBMIT + 105, None]
    upsert(store, frame({**ENDED, "job_id": 1, "known_at": SUBMIT + 999, "end": SUBMIT + 101}), lag=10)
    assert jobs.load(store, Filter(ids=[(1, None)]))["known_at"].item() == SUBMIT + 160


def test_an_intervention_is_never_forgotten(store: Store) -> None:
    upsert(store, frame(PENDING))
    upsert(store, frame({**RUNNING, "intervened": True}))
    upsert(store, frame({**ENDED, "intervened": False}))
    assert only(store)["intervened"] is True


def test_a_key_that_comes_twice_in_one_frame_is_one_job(store: Store) -> None:
    assert upsert(store, frame(PENDING, RUNNING, ENDED, RUNNING)) == Counts(new=1, unchanged=3)
    job = only(store)
    assert (job["name"], job["node_list"], job["state"]) == ("train", "n1", "FAILED")


def test_tasks_of_an_array_and_plain_jobs_do_not_meet(store: Store) -> None:
    rows: list[dict[str, Any]] = [{"task": None}, {"task": 0}, {"task": 1}]
    assert upsert(store, frame(*rows)).new == 3
    assert upsert(store, frame(*rows)).unchanged == 3
    assert jobs.load(store)["task"].to_list() == [None, 0, 1]


def test_odd_text_and_numbers_come_back_as_they_were(store: Store) -> None:
    names = ["", '"', "a,b", "line\nbreak", "\\N", "\\.", "NULL", "日本語 🔔", " ", "'; drop table jobs; --"]
    numbers = [0.1, 1e300, -0.0, 5e-324, float("inf"), 12345678901234567.0, None, 1 / 3, 1.0, 2.5]
    rows = [
        {"job_id": i, "name": n, "energy": e} for i, (n, e) in enumerate(zip(names, numbers, strict=True))
    ]
    upsert(store, frame(*rows))
    assert upsert(store, frame(*rows)).unchanged == len(rows)
    back = jobs.load(store)
    assert back["name"].to_list() == names
    assert back["energy"].to_list() == numbers


def test_what_a_database_cannot_hold_is_replaced_and_not_refused(store: Store) -> None:
    rows = frame({"name": "a\0b", "energy": float("nan"), "read_bytes": 2**63 - 1})
    upsert(store, rows)
    assert upsert(store, rows).unchanged == 1
    job = only(store)
    assert (job["name"], job["energy"], job["read_bytes"]) == ("a\ufffdb", None, 2**63 - 1)


def test_a_job_without_a_key_is_refused_in_a_sentence(store: Store) -> None:
    with pytest.raises(InputError, match="1 of 2 jobs have no submit"):
        upsert(store, frame({}, {"submit": None}))


FEW = [
    "name",
    "time_limit",
    "start",
    "end",
    "state",
    "elapsed",
    "source",
    "known_at",
    "request_final",
    "intervened",
]
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    "String": st.sampled_from(["a", "b", ""]),
    "Int64": st.integers(0, 3),
    "Boolean": st.booleans(),
}
told_rows = st.lists(
    st.fixed_dictionaries(
        {
            "job_id": st.integers(1, 2),
            "task": st.none() | st.integers(0, 1),
            "outcome": st.none() | st.sampled_from(["completed", "failed"]),
            **{name: st.none() | VALUES[str(SCHEMA[name])] for name in FEW},
        }
    ),
    max_size=6,
)


class Plain:
    """The rules once more, job by job and value by value."""

    def __init__(self, lag: int) -> None:
        self.lag = lag
        self.jobs: dict[tuple[Any, ...], dict[str, Any]] = {}

    def known(self, row: dict[str, Any]) -> dict[str, Any]:
        known_at = row["known_at"]
        if known_at is None and row["end"] is not None:
            known_at = row["end"] + self.lag
        return {**row, "known_at": None if row["outcome"] is None else known_at}

    def told(self, rows: list[dict[str, Any]]) -> Counts:
        before = {key: dict(job) for key, job in self.jobs.items()}
        for row in map(self.known, rows):
            key = tuple(row[name] for name in KEY)
            job = self.jobs.setdefault(key, dict(row))
            if job["outcome"] is not None and row["outcome"] is None:
                continue
            for name, value in row.items():
                job[name] = self.merged(name, job[name], value)
        self.jobs = {key: self.known(job) for key, job in self.jobs.items()}
        new = len(self.jobs) - len(before)
        updated = sum(self.jobs[key] != job for key, job in before.items())
        return Counts(new, updated, len(rows) - new - updated)

    @staticmethod
    def merged(name: str, old: Any, new: Any) -> Any:
        if name == "intervened" and True in (old, new):
            return True
        if FIELDS[name].part in (Part.ALLOCATION, Part.USAGE, Part.OUTCOME):
            return old if new is None else new
        return new if old is None else old


clusters = (f"c{i}" for i in count())


@given(st.lists(told_rows, max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_frames_are_merged_as_single_jobs_would_be(store: Store, history: list[list[dict[str, Any]]]) -> None:
    cluster = next(clusters)  # each example has the store's own corner
    plain = Plain(lag=1)
    for rows in history:
        told = frame(*({**row, "cluster": cluster} for row in rows))
        assert upsert(store, told, lag=1) == plain.told(told.rows(named=True))
    stored = jobs.load(store, Filter(clusters=[cluster], arrays=True)).rows(named=True)
    assert {tuple(row[name] for name in KEY): row for row in stored} == plain.jobs
