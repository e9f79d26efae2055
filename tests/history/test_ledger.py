"""The ledger stays small and quick where a cluster is busy."""

import pytest

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.history import ledger
from tocsin.history.ledger import FORGET, Ledger


def ended(number: int, submit: int) -> Job:
    return Job(
        cluster="lab",
        job_id=number,
        task=None,
        submit=submit,
        user="alice",
        start=submit,
        end=submit + 10,
        outcome=Outcome.COMPLETED,
        known_at=submit + 70,
    )


def test_a_job_told_twice_counts_once() -> None:
    book = Ledger()
    jobs = from_jobs([ended(1, 0), ended(2, 5)])
    book.learn(jobs)
    book.learn(jobs)
    asked = from_jobs([Job(cluster="lab", job_id=9, task=None, submit=1000, user="alice")])
    found = book.features(asked, stage=Stage.SUBMIT)
    book.learn(jobs)
    again = book.features(asked, stage=Stage.SUBMIT)
    assert found["user.ended"].to_list() == again["user.ended"].to_list() == [2]
    assert found["user.submitted"].to_list() == again["user.submitted"].to_list() == [2]


def test_jobs_that_ended_long_ago_are_no_longer_remembered_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "_ROOM", 10)
    book = Ledger()
    book.learn(from_jobs([ended(number, number) for number in range(50)]))
    assert len(book.told) == 50
    book.advance(1000 + FORGET)
    assert book.told == {}
    asked = from_jobs([Job(cluster="lab", job_id=99, task=None, submit=2000 + FORGET, user="alice")])
    assert book.features(asked, stage=Stage.SUBMIT)["user.ended"].to_list() == [50]


def test_of_the_jobs_of_one_second_those_with_a_smaller_id_came_before() -> None:
    book = Ledger()
    jobs = from_jobs(
        [Job(cluster="lab", job_id=number, task=None, submit=5, user="alice") for number in (3, 1, 2)]
    )
    book.learn(jobs)
    assert book.features(jobs, stage=Stage.SUBMIT)["user.submitted"].to_list() == [2, 0, 1]
