"""What a watcher asks of the store, on each database."""

import polars as pl

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.decision import Decision
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.jobs import upsert

OVER = {"outcome": "completed", "state": "COMPLETED", "end": SUBMIT + 50}


def judged(store: Store, *keys: JobKey, stage: Stage = Stage.SUBMIT, seq: int = 0) -> None:
    record(
        store,
        Decision(
            verdicts=[
                Verdict(job=str(key), stage=stage, seq=seq, at=SUBMIT, known_until=SUBMIT, level=Level.OK)
                for key in keys
            ]
        ),
    )


def key(job_id: int, task: int | None = None) -> JobKey:
    return JobKey("lab", job_id, task, SUBMIT)


def test_a_watch_is_taken_up_where_it_stood(store: Store) -> None:
    first = watching.begin(store, "lab", 100)
    assert (first.began, first.reached) == (100, 100)
    assert watching.advance(store, first, 150).reached == 150
    assert watching.advance(store, watching.begin(store, "lab", 999), 120).reached == 150
    again = watching.begin(store, "lab", 999)
    assert (again.began, again.reached) == (100, 150)
    assert watching.begin(store, "other", 7).began == 7


def test_the_verdicts_that_were_given(store: Store) -> None:
    judged(store, key(1), key(2, 4))
    judged(store, key(1), stage=Stage.END)
    judged(store, key(3), seq=1)
    asked = [f"lab:{job}@{SUBMIT}" for job in ("1", "2_4", "3", "9")]
    assert sorted(watching.given(store, asked)) == [
        (asked[0], "end"),
        (asked[0], "submit"),
        (asked[1], "submit"),
    ]
    assert watching.given(store, []) == []


def test_jobs_by_their_keys(store: Store) -> None:
    jobs = frame({"job_id": 1}, {"job_id": 2}, {"job_id": 2, "task": 4}, {"job_id": 1, "submit": SUBMIT + 1})
    upsert(store, jobs)
    found = watching.jobs_named(store, frame({"job_id": 2, "task": 4}, {"job_id": 1}, {"job_id": 9}))
    assert sorted(found.select("job_id", "task", "submit").rows()) == [(1, None, SUBMIT), (2, 4, SUBMIT)]
    assert watching.jobs_named(store, jobs.clear()).is_empty()


def test_who_lives_and_was_watched(store: Store) -> None:
    upsert(
        store,
        frame(
            {"job_id": 1},
            {"job_id": 2, **OVER},
            {"job_id": 3, "array": "1-9", "array_tasks": 9},
            {"job_id": 3, "task": 1},
            {"job_id": 4},
            {"job_id": 5, "cluster": "other"},
        ),
    )
    judged(store, *(key(number) for number in (1, 2, 3)), key(3, 1), JobKey("other", 5, None, SUBMIT))
    assert sorted(watching.living(store, "lab").rows()) == [("lab", 1, None, SUBMIT), ("lab", 3, 1, SUBMIT)]


def test_who_ended_since_and_which_arrays_there_are(store: Store) -> None:
    upsert(
        store,
        frame(
            {"job_id": 1, **OVER},
            {"job_id": 2, **OVER, "end": SUBMIT + 10},
            {"job_id": 3},
            {"job_id": 3, "task": 2},
        ),
    )
    assert watching.ended_since(store, "lab", SUBMIT + 20)["job_id"].to_list() == [1]
    assert watching.ended_since(store, "other", 0).is_empty()
    assert watching.arrays(store, "lab", [3, 8]).rows() == [("lab", 3, None, SUBMIT)]
    assert watching.arrays(store, "lab", pl.Series([], dtype=pl.Int64)).is_empty()


def test_a_fingerprint_changes_when_an_older_outcome_is_added(store: Store) -> None:
    upsert(store, frame({"job_id": 1, **OVER, "known_at": SUBMIT + 60}))
    before = watching.fingerprint(store, "lab", SUBMIT + 100)
    upsert(store, frame({"job_id": 2}, {"job_id": 3, **OVER, "known_at": SUBMIT + 101}))
    assert watching.fingerprint(store, "lab", SUBMIT + 100) == before
    upsert(store, frame({"job_id": 4, **OVER, "known_at": SUBMIT + 99}))
    assert watching.fingerprint(store, "lab", SUBMIT + 100) != before
