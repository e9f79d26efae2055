"""The ledger stays small and quick where a cluster is busy."""

from dataclasses import replace

import polars as pl
import pytest

from tocsin.core.fields import Job
from tocsin.core.frames import from_jobs
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.history import ledger
from tocsin.history.ledger import FORGET, Ledger
from tocsin.history.nodes import nodes_of
from tocsin.judge.check_data import demo_check_data


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


def test_peak_memory_that_is_told_after_the_outcome_counts_once() -> None:
    asked = from_jobs([Job(cluster="lab", job_id=9, task=None, submit=1000, user="alice")])
    names = ["user.memory_most", "user.memory_used", "user.ended"]
    used = replace(ended(1, 0), max_memory=4096, req_memory=8192)
    whole = Ledger()
    whole.learn(from_jobs([used]))
    for asked_between in (False, True):
        book = Ledger()
        book.learn(from_jobs([replace(used, max_memory=None)]))
        if asked_between:
            between = book.peek().features(asked, stage=Stage.SUBMIT, names=names)
            assert between.row(0) == (None, None, 1)
            book.advance(500)
        for _ in range(2):
            book.learn(from_jobs([used]))
        found = book.features(asked, stage=Stage.SUBMIT, names=names)
        assert found.row(0) == (4096, 0.5, 1)
        assert found.equals(whole.features(asked, stage=Stage.SUBMIT, names=names))


def test_jobs_that_ended_long_ago_are_no_longer_remembered_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "_ROOM", 10)
    book = Ledger()
    book.learn(from_jobs([ended(number, number) for number in range(50)]))
    assert len(book.learned) == 50
    book.advance(1000 + FORGET)
    assert book.learned == {}
    asked = from_jobs([Job(cluster="lab", job_id=99, task=None, submit=2000 + FORGET, user="alice")])
    assert book.features(asked, stage=Stage.SUBMIT)["user.ended"].to_list() == [50]


def test_of_the_jobs_of_one_second_those_with_a_smaller_id_came_before() -> None:
    book = Ledger()
    jobs = from_jobs(
        [Job(cluster="lab", job_id=number, task=None, submit=5, user="alice") for number in (3, 1, 2)]
    )
    book.learn(jobs)
    assert book.features(jobs, stage=Stage.SUBMIT)["user.submitted"].to_list() == [2, 0, 1]


def state(book: Ledger) -> object:
    groups = [{name: group.to_json() for name, group in groups.items()} for groups in book.groups]
    return book.known_until, groups, book.nodes.to_json(), dict(book.learned), book.counted()


def test_a_question_in_between_changes_no_later_answer() -> None:
    """The watched ledger stays as it is, and a peek tells what the ledger itself would have told."""
    log = demo_check_data().log.sort("submit").head(1500)
    middle, until = int(log["submit"][700]), int(log["submit"][1000])
    later = log.filter(pl.col("submit") > until)
    nodes = pl.DataFrame(
        {"at": [until, until], "node": [nodes_of(log["node_list"].drop_nulls()[0])[0], "nowhere"]}
    )
    undisturbed, book, forward = Ledger(), Ledger(), Ledger()
    for each in (undisturbed, book, forward):
        each.learn(log)
        each.advance(middle)
    asked = log.filter(pl.col("submit").is_between(middle, until))
    before = state(book)
    assert book.peek().features(asked, stage=Stage.START)["user.ended"].max() is not None
    assert book.peek().features(asked, stage=Stage.SUBMIT).equals(forward.features(asked, stage=Stage.SUBMIT))
    forward.advance(until)
    outcomes = forward.node_outcomes(nodes)
    assert outcomes["ended"][0] > 0
    assert book.peek().node_outcomes(nodes).equals(outcomes)
    assert state(book) == before
    assert book.features(later, stage=Stage.SUBMIT).equals(undisturbed.features(later, stage=Stage.SUBMIT))
    assert state(book) == state(undisturbed)
