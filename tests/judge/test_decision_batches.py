"""Decisions in batches: what is to be held comes first, and every job gets the verdict that it would get otherwise."""

from dataclasses import replace

import polars as pl
import pytest

from tests.judge.test_actions import ACT
from tests.judge.test_rogue import decided, home, judge, of, store
from tests.kits.watching import NOON, frame
from tocsin.core.allow_list import AllowEntry, SubjectKind
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger
from tocsin.judge.decision_batches import DecisionBatches
from tocsin.judge.judge import Judge
from tocsin.judge.policy import ROGUE_CASES
from tocsin.store.allow import add
from tocsin.store.database import Store
from tocsin.store.decisions import record

__all__ = ["home", "store"]  # fixtures

ALLOWED = AllowEntry(
    operation="cyber", kind=SubjectKind.ACCOUNT, name="audit", reason="audit", granted_by="ada"
)
BURST = frame(
    *(
        {"job_id": number, "submit": NOON + number, "account": "audit" if number < 5 else "chem"}
        for number in range(1, 6)
    )
)
"""Four jobs of an account that may do this, and then one of another account."""


@pytest.fixture
def acting(store: Store) -> Judge:
    """A judge who holds rogue jobs; ann never did before what all her jobs do now."""
    add(store, ALLOWED, at=1)
    before = frame(*({"job_id": 100 + n, "submit": NOON - 3 * 86_400 + n} for n in range(1, 31)))
    decided(store, judge(store, of(cyber=0.1)), before)
    made = judge(store, of(cyber=0.9))
    made.policy = replace(ROGUE_CASES, actions=ACT)
    return made


def batches(judge: Judge, jobs: pl.DataFrame) -> DecisionBatches:
    late, until = [False] * jobs.height, [NOON + 9] * jobs.height
    return DecisionBatches(
        judge, jobs, Stage.SUBMIT, known=Ledger(), at=NOON + 9, late=late, known_until=until
    )


def test_a_job_that_is_to_be_held_is_decided_first(acting: Judge) -> None:
    found = batches(acting, BURST)
    assert (found.first, found.slow) == ([[4], [0, 1, 2, 3]], [])


def test_in_batches_each_job_gets_the_verdict_that_it_gets_in_one_decision(
    acting: Judge, store: Store
) -> None:
    together = acting.decide(BURST, Stage.SUBMIT, known=Ledger(), at=NOON + 9, known_until=[NOON + 9] * 5)
    found = batches(acting, BURST)
    decisions = [found.decide(rows) for rows in (*found.first, *found.slow)]
    given = [verdict for decision in decisions for verdict in decision.verdicts]
    assert sorted(given, key=lambda verdict: verdict.job) == together.verdicts
    assert [action.job for action in decisions[0].actions] == [f"lab:5@{NOON + 5}"]


def test_a_change_of_habits_is_seen_though_its_last_job_is_decided_first(acting: Judge, store: Store) -> None:
    found = batches(acting, BURST)
    given = [verdict for rows in found.first for verdict in record(store, found.decide(rows))]
    hints = [(v.job, f.text) for v in given for f in v.findings if f.kind == "habit"]
    [(job, text)] = hints
    assert job == f"lab:5@{NOON + 5}"
    assert "then ran it 5 times within a day" in text
