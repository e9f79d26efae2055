"""Cases: opened as policy says, answered by people, silent for ever after; and the commands that show them."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.judge.test_judge import finding, seat
from tests.kits.watching import NOON, frame
from tocsin.cli.cases import cases as command
from tocsin.core.detector import Parts
from tocsin.core.errors import NotFound, SettingsError
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus, Level, Verdict
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.judge.policy import NO_CASES, Policy, Rule
from tocsin.store import audit
from tocsin.store.cases import answer, list_cases, show
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import load_facts, record
from tocsin.store.home import Home

CRITICAL = Policy([Rule(detector="a", level=Level.CRITICAL)])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


@pytest.fixture
def store(home: Home) -> Iterator[Store]:
    with open_store(home.url) as opened:
        yield opened


def judged(store: Store, policy: Policy = CRITICAL, *, at: int = NOON, **job: object) -> Verdict:
    judge = critical(store, policy)
    decision = judge.decide(frame({"name": "mine", **job}), Stage.SUBMIT, known=Ledger(), at=at)
    return (record(store, decision) or decision.verdicts)[0]


def critical(store: Store, policy: Policy) -> Judge:
    seats = {"a": seat(lambda row: Parts(findings=[finding(Level.CRITICAL)]))}
    return Judge(seats, policy, facts=partial(load_facts, store))


def test_a_finding_opens_one_case_for_all_jobs_with_the_same_cause(store: Store) -> None:
    first, second = judged(store, job_id=1), judged(store, job_id=2, at=NOON + 5)
    [case] = list_cases(store)
    assert case.cause == "a:k:lab:ann:mine"
    assert (str(case.job), case.opened) == (f"lab:1@{NOON}", NOON)
    assert first.level is second.level is Level.CRITICAL
    assert [v.findings[0].case.number for v in (first, second) if v.findings[0].case] == [1, 1]


def test_another_user_or_subject_is_another_cause(store: Store) -> None:
    judged(store)
    judged(store, user="bob")
    judged(store, name="other")
    judged(store, name=None)
    assert [case.cause for case in list_cases(store)] == [
        "a:k:lab:ann:mine",
        "a:k:lab:bob:mine",
        "a:k:lab:ann:other",
        "a:k:lab:ann:",
    ]


def test_a_rule_may_name_another_subject(store: Store) -> None:
    policy = Policy([Rule(detector="a", subject="account")])
    judged(store, policy, account="chem")
    judged(store, policy, account="chem", name="other")
    assert [case.cause for case in list_cases(store)] == ["a:k:lab:ann:chem"]
    with pytest.raises(SettingsError, match="known at submission"):
        Rule(subject="end")


@pytest.mark.parametrize(
    "policy", [NO_CASES, Policy([Rule(detector="b")]), Policy([Rule(level=Level.WARNING)])]
)
def test_what_no_rule_covers_opens_nothing(store: Store, policy: Policy) -> None:
    assert judged(store, policy).level is Level.CRITICAL
    assert list_cases(store, None) == []


@pytest.mark.parametrize("status", [CaseStatus.CONFIRMED, CaseStatus.DISMISSED])
def test_an_answered_case_never_rings_again(store: Store, status: CaseStatus) -> None:
    judged(store)
    answer(store, 1, status, who="eve", at=NOON + 9, note="we know")
    later = judged(store, job_id=5, at=NOON + 20)
    assert later.level is Level.OK
    [silent] = later.findings
    assert silent.level is Level.OK
    assert silent.case is not None
    assert (silent.case.number, silent.case.status, silent.case.by) == (1, status, "eve")
    assert silent.case.text == f"case 1 was {status} by eve: we know"
    assert len(list_cases(store, None)) == 1
    assert judged(store, name="other").level is Level.CRITICAL


def test_a_case_that_is_opened_again_rings_again(store: Store) -> None:
    judged(store)
    answer(store, 1, CaseStatus.DISMISSED, who="eve", at=NOON + 9)
    answer(store, 1, CaseStatus.OPEN, who="eve", at=NOON + 10, note="I was wrong")
    assert judged(store, job_id=5).level is Level.CRITICAL
    assert [said.answer for said in show(store, 1).answers] == [CaseStatus.DISMISSED, CaseStatus.OPEN]


def test_an_explanation_opens_no_case(store: Store) -> None:
    critical(store, CRITICAL).explain(frame({}), Stage.SUBMIT, known=Ledger(), at=NOON)
    assert list_cases(store, None) == []


def test_who_answered_is_written_down(store: Store) -> None:
    judged(store)
    answer(store, 1, CaseStatus.CONFIRMED, who="eve", at=NOON + 9, note="mining")
    [entry] = audit.read(store)
    assert (entry.who, entry.what, entry.detail) == ("eve", "case confirmed", {"case": 1, "note": "mining"})
    with pytest.raises(NotFound, match="no case 9"):
        answer(store, 9, CaseStatus.CONFIRMED, who="eve", at=NOON)


class TestCommand:
    """`tocsin cases`, by its own command object."""

    @staticmethod
    def run(home: Home, *arguments: str) -> tuple[int, str]:
        from click.testing import CliRunner

        from tocsin.app.app import App

        with App(folder=str(home.root), environ={"TZ": "UTC"}) as app:
            done = CliRunner().invoke(command, list(arguments), obj=app)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def test_list_show_confirm_dismiss(self, home: Home, store: Store) -> None:
        judged(store)
        judged(store, user="bob")
        assert "no case is open" not in self.run(home)[1]
        listed = json.loads(self.run(home, "list", "--json")[1])["cases"]
        assert [(case["case"], case["status"], case["user"]) for case in listed] == [
            (1, "open", "ann"),
            (2, "open", "bob"),
        ]
        assert listed[0]["opened"] == "2026-01-05T12:00:00Z"
        code, said = self.run(home, "confirm", "1", "--note", "mining")
        assert code == 0
        assert said.startswith("case 1 is confirmed: it is critical")
        assert "mining" in said
        answers = json.loads(self.run(home, "dismiss", "2", "--json")[1])["answers"]
        assert [said["answer"] for said in answers] == ["dismissed"]
        assert "no case is open" in self.run(home, "list")[1]
        table = self.run(home, "list", "--all", "-P", "-n")[1].splitlines()
        assert [line.split("|")[:2] for line in table] == [["1", "confirmed"], ["2", "dismissed"]]
        assert "cause    a:k:lab:ann:mine" in self.run(home, "show", "1")[1]
        with pytest.raises(NotFound, match="no case 7"):
            self.run(home, "show", "7")
