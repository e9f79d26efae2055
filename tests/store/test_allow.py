"""Permissions and screenings in the store, on each database."""

import pytest

from tests.kits.job_frames import SUBMIT, frame
from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.decision import Decision, Screened
from tocsin.core.errors import NotFound
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.store import audit, jobs, screenings, watching
from tocsin.store.allow import add, entries, remove, set_default
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.retention import prune
from tocsin.store.tables import NO_TASK


def grant(**more: object) -> AllowEntry:
    plain = {
        "operation": "cyber",
        "kind": SubjectKind.ACCOUNT,
        "name": "sec",
        "reason": "audit",
        "granted_by": "ada",
    }
    return AllowEntry(**{**plain, **more})  # type: ignore[arg-type]  # as each test says


def test_an_entry_is_stored_with_who_granted_it(store: Store) -> None:
    number = add(store, grant(since=10, until=20), at=5)
    assert entries(store) == [grant(since=10, until=20, origin=f"entry {number}")]
    [entry] = audit.read(store)
    assert (entry.who, entry.what, entry.detail["name"]) == ("ada", "allow added", "sec")


def test_an_equal_entry_in_force_is_not_added_again(store: Store) -> None:
    number = add(store, grant(), at=5)
    assert add(store, grant(reason="again"), at=6) == number
    assert add(store, grant(until=50), at=7) != number
    remove(store, number, at=8, who="bob")
    assert add(store, grant(), at=9) != number
    assert len(entries(store)) == len([row for row in audit.read(store) if row.what == "allow added"]) == 3


def test_a_revoked_entry_applies_until_its_revocation(store: Store) -> None:
    number = add(store, grant(), at=5)
    remove(store, number, at=100, who="bob")
    [left] = entries(store)
    assert (left.counts(99), left.counts(100)) == (True, False)
    assert [entry.who for entry in audit.read(store)] == ["bob", "ada"]
    with pytest.raises(NotFound, match="already revoked"):
        remove(store, number, at=101, who="bob")
    with pytest.raises(NotFound, match=r"does not exist; .*tocsin allow list"):
        remove(store, 99, at=101, who="bob")


def test_a_new_rule_takes_the_place_of_the_old_one(store: Store) -> None:
    for at, rule in enumerate((DefaultRule.NEVER, DefaultRule.ALLOWED)):
        set_default(store, "chess", rule, at=at, who="ada")
    assert [g.name for g in entries(store) if g.until is None] == ["allowed"]


def screened(job: int, submit: int, user: str = "ann", **operations: float) -> Screened:
    return Screened(f"lab:{job}@{submit}", "lab", user, submit, operations)


def test_a_users_past_is_what_was_screened_up_to_an_instant(store: Store) -> None:
    rows = [screened(1, 10, ai=0.9), screened(2, 20, ai=0.1), screened(3, 30, ai=0.8), screened(4, 15)]
    record(store, Decision(screenings=[*rows, screened(5, 12, user="bob", ai=1.0)]))
    record(store, Decision(screenings=[screened(1, 10, ai=0.0)]))  # the first one stays
    with store.reading() as connection:
        found = screenings.submissions(connection, "lab", "ann", until=29)
    assert {one.submit: one.operations for one in found} == {10: {"ai": 0.9}, 15: {}, 20: {"ai": 0.1}}
    assert screenings.operations_by_job(store, since=20) == {"lab:2@20": {"ai": 0.1}, "lab:3@30": {"ai": 0.8}}


def test_jobs_with_a_script_are_unscreened_until_they_are(store: Store) -> None:
    jobs.upsert(
        store, frame({"job_id": 1, "script": "a"}, {"job_id": 2}, {"job_id": 3, "task": 4, "script": "b"})
    )
    assert [row["job_id"] for row in screenings.unscreened(store, 9, now=SUBMIT)] == [1, 3]
    record(store, Decision(screenings=[Screened(f"lab:3_4@{SUBMIT}", "lab", "", SUBMIT, {})]))
    assert [row["job_id"] for row in screenings.unscreened(store, 9, now=SUBMIT)] == [1]


def test_tasks_of_a_known_array_and_jobs_of_a_running_watch_are_left_alone(store: Store) -> None:
    jobs.upsert(
        store,
        frame(
            {"job_id": 1, "array": "1-2", "script": "a"},
            {"job_id": 1, "task": 1, "script": "a"},
            {"job_id": 2, "task": 1, "script": "a"},  # imported: no record of its array
        ),
    )
    assert [(row["job_id"], row["task"]) for row in screenings.unscreened(store, 9, now=SUBMIT)] == [
        (1, NO_TASK),
        (2, 1),
    ]
    watching.begin(store, "lab", SUBMIT)
    assert screenings.unscreened(store, 9, now=SUBMIT + 60) == []
    record(store, Decision(verdicts=[verdict_on(f"lab:1@{SUBMIT}")]))
    assert [row["job_id"] for row in screenings.unscreened(store, 9, now=SUBMIT + 60)] == [1]
    assert len(screenings.unscreened(store, 9, now=SUBMIT + 3600)) == 2  # the watch has stopped


def verdict_on(job: str) -> Verdict:
    return Verdict(job=job, stage=Stage.SUBMIT, at=SUBMIT, known_until=SUBMIT, level=Level.OK)


def test_what_is_pruned_is_forgotten(store: Store, home: Home) -> None:
    jobs.upsert(store, frame({"end": SUBMIT + 5, "outcome": "completed"}))
    record(store, Decision(screenings=[screened(1, SUBMIT, ai=0.9)]))
    prune(store, home, before=SUBMIT + 10)
    assert screenings.operations_by_job(store, since=0) == {}
