from dataclasses import replace

import pytest

from tocsin.core.errors import NotFound
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.store import audit, cases
from tocsin.store.audit import Entry
from tocsin.store.cases import Status
from tocsin.store.database import Store
from tocsin.store.verdicts import StoredVerdict, acknowledge, of_job, record, waiting

KEY = JobKey("lab", 17, 4, 1_794_775_393)
VERDICT = StoredVerdict(
    job=KEY, stage=Stage.SUBMIT, seq=0, at=100, level="warning", document={"schema": 1, "text": "läutet"}
)


def test_a_verdict_is_stored_once_with_one_message_to_each_sink(store: Store) -> None:
    other = replace(VERDICT, stage=Stage.START, at=200, late=True)
    assert record(store, [VERDICT, VERDICT, other], ["kafka", "mail"]) == [VERDICT, other]
    assert record(store, [replace(VERDICT, level="ok", document={})], ["kafka"]) == []
    assert of_job(store, KEY) == [VERDICT, other]
    assert [m.document for m in waiting(store, "kafka")] == [VERDICT.document, other.document]
    assert len(waiting(store, "mail")) == 2


def test_a_message_waits_until_its_sink_has_taken_it(store: Store) -> None:
    record(store, [replace(VERDICT, seq=seq) for seq in range(3)], ["kafka", "mail"])
    first = waiting(store, "kafka", limit=2)
    assert waiting(store, "kafka", limit=2) == first
    acknowledge(store, first)
    acknowledge(store, [])
    assert len(waiting(store, "kafka")) == 1
    assert len(waiting(store, "mail")) == 3


def test_a_verdict_without_sinks_sends_nothing(store: Store) -> None:
    record(store, [VERDICT])
    assert waiting(store, "kafka") == []
    assert of_job(store, JobKey("lab", 17, 5, 1)) == []


def test_the_same_cause_never_rings_twice(store: Store) -> None:
    opened = cases.open_case(store, cause="ana/mining", job=KEY, at=100, document={"rule": "no mining"})
    assert opened is not None
    assert cases.open_case(store, cause="ana/mining", job=KEY, at=200, document={}) is None
    cases.answer(store, opened.id, Status.DISMISSED, who="root", at=300, note="a benchmark")
    assert cases.open_case(store, cause="ana/mining", job=KEY, at=400, document={}) is None
    assert cases.list_cases(store) == []
    assert [case.id for case in cases.list_cases(store, None)] == [opened.id]


def test_answers_are_kept_and_the_last_one_counts(store: Store) -> None:
    opened = cases.open_case(store, cause="x", job=KEY, at=100, document={})
    assert opened is not None
    cases.answer(store, opened.id, Status.DISMISSED, who="ana", at=200)
    cases.answer(store, opened.id, Status.CONFIRMED, who="ben", at=300, note="no, look at line 4")
    case = cases.show(store, opened.id)
    assert case.status is Status.CONFIRMED
    assert [(a.who, a.answer, a.note) for a in case.answers] == [
        ("ana", Status.DISMISSED, ""),
        ("ben", Status.CONFIRMED, "no, look at line 4"),
    ]


def test_an_unknown_case_is_said_so(store: Store) -> None:
    with pytest.raises(NotFound, match="no case 7 "):
        cases.show(store, 7)
    with pytest.raises(NotFound, match="no case 7 "):
        cases.answer(store, 7, Status.CONFIRMED, who="ana", at=1)


def test_the_audit_trail_is_read_from_its_end(store: Store) -> None:
    held = Entry(at=100, who="tocsin", what="hold", job=KEY, detail={"reason": "mining"})
    asked = Entry(at=200, who="ana", what="prune")
    audit.append(store, held)
    audit.append(store, asked)
    assert audit.read(store) == [asked, held]
    assert audit.read(store, job=KEY) == [held]
    assert audit.read(store, limit=1) == [asked]
