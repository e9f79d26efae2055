"""Verdicts, cases and messages: each stored once, in one transaction."""

from dataclasses import replace

import pytest
import sqlalchemy as sa

from tests.kits.outbox import takes
from tocsin.core.decision import Decision, FactsRequest, HabitHint, NewCase, Screened
from tocsin.core.errors import NotFound
from tocsin.core.ids import JobKey
from tocsin.core.ports import Receipt
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseReference, CaseStatus, Finding, Level, Rogue, Verdict
from tocsin.store import audit, cases
from tocsin.store.audit import Entry
from tocsin.store.database import Store
from tocsin.store.decisions import load_facts, record
from tocsin.store.outbox import acknowledge, discard_others, waiting
from tocsin.store.tables import METADATA
from tocsin.store.verdicts import alarms, next_seq, of_job

KEY = JobKey("lab", 17, 4, 1_794_775_393)
CAUSE = "a:rogue:lab:ann:cyber"
VERDICT = Verdict(job=str(KEY), stage=Stage.SUBMIT, at=100, known_until=90, level=Level.WARNING)
SINKS = {"kafka": takes("verdict", "case"), "mail": takes("verdict")}


def decision(*verdicts: Verdict) -> Decision:
    return Decision(verdicts=list(verdicts))


def with_case(cause: str = CAUSE) -> Decision:
    """A verdict with a new case, and all else that a decision may hold."""
    case = CaseReference(cause=cause)
    finding = Finding(detector="a", kind="rogue", level=Level.CRITICAL, text="it mines", case=case)
    rogue = Rogue(rogue=True, operations=["cyber"], rule="never", action="alarm", case=case)
    return Decision(
        verdicts=[replace(VERDICT, level=Level.CRITICAL, findings=[finding], rogue=rogue)],
        cases=[NewCase(cause, str(KEY), 100, {"script": "abc"})],
        screenings=[Screened(str(KEY), "lab", "ann", KEY.submit, {"cyber": 0.9})],
        hints=[HabitHint(str(KEY), "lab", "ann", "cyber", KEY.submit)],
    )


def test_a_verdict_is_stored_once_with_one_message_to_each_sink(store: Store) -> None:
    other = replace(VERDICT, stage=Stage.START, at=200, late=True)
    assert record(store, decision(VERDICT, VERDICT, other), SINKS) == [VERDICT, other]
    assert record(store, decision(replace(VERDICT, level=Level.OK)), SINKS) == []
    assert of_job(store, KEY) == [VERDICT, other]
    assert [m.document for m in waiting(store, "kafka", 9)] == [VERDICT.to_json(), other.to_json()]
    assert [m.reference for m in waiting(store, "mail", 9)] == [v.to_json()["id"] for v in (VERDICT, other)]


def test_a_message_waits_until_its_sink_has_taken_it(store: Store) -> None:
    record(store, decision(*(replace(VERDICT, seq=seq) for seq in range(3))), SINKS)
    first = waiting(store, "kafka", limit=2)
    assert waiting(store, "kafka", limit=2) == first
    acknowledge(store, "kafka", Receipt(first), now=50)
    acknowledge(store, "kafka", Receipt([]), now=60)
    assert len(waiting(store, "kafka", 9)) == 1
    assert len(waiting(store, "mail", 9)) == 3
    discard_others(store, ["mail"])
    assert waiting(store, "kafka", 9) == []


def test_a_verdict_without_sinks_sends_nothing(store: Store) -> None:
    record(store, decision(VERDICT))
    assert waiting(store, "kafka", 9) == []
    assert of_job(store, JobKey("lab", 17, 5, 1)) == []


def test_a_case_gets_its_number_when_the_decision_is_written(store: Store) -> None:
    [first] = record(store, with_case("another"), {})
    [verdict] = record(store, replace(with_case(), verdicts=[replace(with_case().verdicts[0], seq=1)]), SINKS)
    assert first.rogue is not None
    assert first.rogue.case is not None
    assert verdict.rogue is not None
    assert verdict.rogue.case is not None
    assert (first.rogue.case.number, verdict.rogue.case.number) == (1, 2)
    assert verdict.findings[0].case == verdict.rogue.case
    assert of_job(store, KEY) == [first, verdict]
    kinds = [(message.kind, message.document.get("case")) for message in waiting(store, "kafka", 9)]
    assert kinds == [("case", 2), ("verdict", None)]
    assert [message.kind for message in waiting(store, "mail", 9)] == ["verdict"]


def test_a_decision_is_written_as_a_whole_or_not_at_all(store: Store) -> None:
    broken = replace(with_case(), hints=[HabitHint(str(KEY), "lab", "ann", None, 1)])  # type: ignore[arg-type]  # refused by the database
    with pytest.raises(Exception, match="habit_hints"):
        record(store, broken, SINKS)
    with store.reading() as connection:
        for name in ("verdicts", "cases", "screenings", "habit_hints", "outbox"):
            assert connection.execute(sa.select(METADATA.tables[name])).all() == [], name


def test_facts_are_what_earlier_decisions_left(store: Store) -> None:
    record(store, with_case())
    cases.answer(store, 1, CaseStatus.DISMISSED, who="eve", at=5, note="ours")
    request = FactsRequest(
        users=frozenset({("lab", "ann")}), last=KEY.submit, cases=True, jobs=(str(KEY), "lab:1@1")
    )
    facts = load_facts(store, request)
    assert facts.cases[CAUSE].reference == CaseReference(
        cause=CAUSE, number=1, status=CaseStatus.DISMISSED, by="eve", note="ours"
    )
    assert facts.cases[CAUSE].script == "abc"
    assert [one.operations for one in facts.screened] == [{"cyber": 0.9}]
    assert facts.hints == with_case().hints
    assert [verdict.job for verdict in facts.verdicts] == [str(KEY)]
    other = replace(request, users=frozenset({("lab", "bob")}), jobs=(), cases=False)
    of_others = load_facts(store, other)
    assert not any((of_others.cases, of_others.screened, of_others.hints, of_others.verdicts))


def test_the_next_number_of_a_verdict_at_a_stage(store: Store) -> None:
    running = replace(VERDICT, stage=Stage.RUNNING)
    record(store, decision(VERDICT, running, replace(running, seq=1)))
    jobs = [str(KEY), "lab:1@1"]
    assert next_seq(store, jobs, Stage.RUNNING) == [2, 0]


def opened(store: Store) -> int:
    record(store, with_case())
    return 1


def test_the_same_cause_never_rings_twice(store: Store) -> None:
    number = opened(store)
    cases.answer(store, number, CaseStatus.DISMISSED, who="root", at=300, note="a benchmark")
    record(store, replace(with_case(), verdicts=[]))
    assert cases.list_cases(store) == []
    assert [case.id for case in cases.list_cases(store, None)] == [number]


def test_answers_are_kept_and_the_last_one_counts(store: Store) -> None:
    number = opened(store)
    cases.answer(store, number, CaseStatus.DISMISSED, who="ana", at=200)
    cases.answer(store, number, CaseStatus.CONFIRMED, who="ben", at=300, note="no, look at line 4")
    case = cases.show(store, number)
    assert case.status is CaseStatus.CONFIRMED
    assert [(a.who, a.answer, a.note) for a in case.answers] == [
        ("ana", CaseStatus.DISMISSED, ""),
        ("ben", CaseStatus.CONFIRMED, "no, look at line 4"),
    ]


def test_an_unknown_case_is_said_so(store: Store) -> None:
    with pytest.raises(NotFound, match="no case 7 "):
        cases.show(store, 7)
    with pytest.raises(NotFound, match="no case 7 "):
        cases.answer(store, 7, CaseStatus.CONFIRMED, who="ana", at=1)


def test_the_audit_trail_is_read_from_its_end(store: Store) -> None:
    held = Entry(at=100, who="tocsin", what="hold", job=KEY, detail={"reason": "mining"})
    asked = Entry(at=200, who="ana", what="prune")
    audit.append(store, held)
    audit.append(store, asked)
    assert audit.read(store) == [asked, held]
    assert audit.read(store, job=KEY) == [held]
    assert audit.read(store, limit=1) == [asked]


def test_the_verdicts_of_a_case_and_the_alarms_of_a_job_are_found(store: Store) -> None:
    def given(number: int, level: Level, *, case: str | None = None) -> Verdict:
        reference = CaseReference(cause=case) if case else None
        rogue = Rogue(rogue=True, operations=["cyber"], rule="never", action="alarm", case=reference)
        return Verdict(
            job=f"lab:{number}@7", stage=Stage.SUBMIT, at=9, known_until=7, level=level, rogue=rogue
        )

    verdicts = [
        given(1, Level.CRITICAL, case="a"),
        given(2, Level.CRITICAL, case="b"),
        given(3, Level.OK, case="a"),
        given(4, Level.WARNING),
    ]
    opened = [NewCase(cause, f"lab:{n}@7", 9, {}) for n, cause in enumerate("ab", 1)]
    record(store, Decision(verdicts=verdicts, cases=opened))
    [first, _] = cases.list_cases(store)
    assert [each.job for each in cases.verdicts_of(store, first)] == ["lab:1@7", "lab:3@7"]
    assert sorted(alarms(store, [each.job for each in verdicts])) == ["lab:1@7", "lab:2@7", "lab:4@7"]
