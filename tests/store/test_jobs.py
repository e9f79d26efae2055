"""Which jobs are listed, and how."""

from typing import Any

import polars as pl
import pytest

from tests.kits.job_frames import SUBMIT, frame, many
from tocsin.core.decision import Decision
from tocsin.core.errors import InputError
from tocsin.core.frames import SCHEMA
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Screening, Verdict, Workload
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.jobs import Filter, load, scan, upsert


def ids(store: Store, which: Filter) -> list[int]:
    return load(store, which, ["job_id"])["job_id"].to_list()


def test_an_empty_store_gives_an_empty_frame_of_the_right_form(store: Store) -> None:
    assert load(store).schema == SCHEMA
    assert load(store, columns=["user", "end"]).schema == {"user": pl.String, "end": pl.Int64}


def test_all_comes_back_in_the_form_of_frames(store: Store) -> None:
    jobs = many(500)
    upsert(store, jobs)
    assert load(store).drop("known_at").equals(jobs.drop("known_at"))


def test_words_choose_as_in_sacct(store: Store) -> None:
    upsert(
        store,
        frame(
            {
                "job_id": 1,
                "user": "ana",
                "account": "bio",
                "partition": "gpu",
                "state": "FAILED",
                "name": "x",
            },
            {
                "job_id": 2,
                "user": "ben",
                "account": "bio",
                "partition": "cpu",
                "state": "RUNNING",
                "name": "y",
            },
            {
                "job_id": 3,
                "user": "ana",
                "account": "phy",
                "partition": "cpu",
                "state": "FAILED",
                "cluster": "far",
            },
        ),
    )
    assert ids(store, Filter(users=["ana"])) == [1, 3]
    assert ids(store, Filter(users=["ana", "ben"], accounts=["bio"])) == [1, 2]
    assert ids(store, Filter(partitions=["cpu"], states=["FAILED"])) == [3]
    assert ids(store, Filter(names=["y"])) == [2]
    assert ids(store, Filter(clusters=["far"])) == [3]
    assert ids(store, Filter(users=["nobody"])) == []


def test_an_id_is_a_job_or_a_whole_array_and_a_task_is_one(store: Store) -> None:
    upsert(store, frame({"job_id": 4}, *({"job_id": 5, "task": task} for task in (None, 0, 1, 2))))
    found = load(store, Filter(ids=[(5, None)]))
    assert found["task"].to_list() == [None, 0, 1, 2]
    assert load(store, Filter(ids=[(5, 1)]))["task"].to_list() == [1]
    assert load(store, Filter(ids=[(4, None), (5, 2)]))["job_id"].to_list() == [4, 5]


def test_a_window_has_the_jobs_that_lived_in_it(store: Store) -> None:
    upsert(
        store,
        frame(
            {"job_id": 1, "submit": 100, "end": 200},
            {"job_id": 2, "submit": 150, "end": 400},
            {"job_id": 3, "submit": 160},
            {"job_id": 4, "submit": 170, "eligible": 350, "end": 500},
            {"job_id": 5, "submit": 350},
        ),
    )
    assert ids(store, Filter(since=250, until=300)) == [2, 3]
    assert ids(store, Filter(since=200, until=350)) == [1, 2, 3, 4, 5]
    assert ids(store, Filter(since=450)) == [3, 4, 5]
    assert ids(store, Filter(until=100)) == [1]


def test_order_and_limit(store: Store) -> None:
    upsert(
        store, frame(*({"job_id": i, "submit": 100 + i, "elapsed": e} for i, e in enumerate([5, None, 9, 1])))
    )
    assert ids(store, Filter(order="-submit", limit=2)) == [3, 2]
    assert ids(store, Filter(order="elapsed")) == [3, 0, 2, 1]
    assert ids(store, Filter(order="-elapsed", limit=1)) == [2]
    with pytest.raises(InputError, match='"nonsense" is not a job field'):
        load(store, Filter(order="nonsense"))


def test_unknown_columns_are_refused(store: Store) -> None:
    with pytest.raises(InputError, match='"passwort" is not a job field'):
        load(store, columns=["passwort"])


def test_scan_gives_bounded_frames_in_order_of_submission(store: Store) -> None:
    upsert(store, many(250).sample(fraction=1, shuffle=True, seed=1))
    batches = list(scan(store, batch=100, columns=["submit", "name"]))
    assert [batch.height for batch in batches] == [100, 100, 50]
    assert pl.concat(batches)["submit"].is_sorted()
    assert batches[0].schema == {"submit": pl.Int64, "name": pl.String}


def test_an_array_is_listed_until_all_of_its_tasks_are(store: Store) -> None:
    array = {"job_id": 9, "array": "1-2", "array_tasks": 2, "state": "PENDING"}
    upsert(store, frame(array))
    assert load(store)["task"].to_list() == [None]
    upsert(store, frame({"job_id": 9, "task": 1, "state": "RUNNING"}))
    assert load(store)["task"].to_list() == [None, 1]
    upsert(store, frame({"job_id": 9, "task": 2, "state": "RUNNING", "submit": SUBMIT + 5}))
    assert load(store)["task"].to_list() == [1, 2]
    assert load(store, Filter(arrays=True))["task"].to_list() == [None, 1, 2]


def test_tasks_of_another_cluster_or_an_earlier_array_do_not_hide_it(store: Store) -> None:
    array = {"job_id": 9, "array": "1", "array_tasks": 1}
    others: list[dict[str, Any]] = [
        {"job_id": 9, "task": 1, "cluster": "far"},
        {"job_id": 9, "task": 1, "submit": SUBMIT - 1000},
    ]
    upsert(store, frame(array, *others, {"job_id": 10, "array": "1-...", "array_tasks": None}))
    assert load(store, Filter(clusters=["lab"]))["array"].to_list() == [None, "1", "1-..."]


def test_jobs_are_found_by_the_domain_of_their_verdict_and_tasks_by_that_of_their_array(store: Store) -> None:
    upsert(
        store,
        frame(
            {"job_id": 1},
            {"job_id": 2},
            {"job_id": 3, "array": "1-2"},
            {"job_id": 3, "task": 1},
            {"job_id": 4},
        ),
    )
    given = [
        Verdict(
            job=f"lab:{job}@{SUBMIT}",
            stage=Stage.SUBMIT,
            at=SUBMIT,
            known_until=SUBMIT,
            level=Level.OK,
            workload=Workload(submission=Screening(operations={}, domain=domain)) if domain else None,
        )
        for job, domain in ((1, "interactive"), (2, "chemistry"), (3, "idle"), (4, None))
    ]
    record(store, Decision(verdicts=given))
    found = load(store, Filter(domains=["interactive", "idle"]))
    assert found.sort("job_id", "task").select("job_id", "task").rows() == [(1, None), (3, None), (3, 1)]
