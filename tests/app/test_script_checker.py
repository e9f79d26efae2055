"""The script checker reads what changes seldom once for many checks."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tocsin.app import script_checker
from tocsin.app.app import App
from tocsin.app.script_checker import ScriptChecker, TimedCache, cached_facts
from tocsin.app.watch import Followed
from tocsin.core.decision import Facts, FactsRequest, Screened
from tocsin.core.machine import Machine
from tocsin.history.ledger import Ledger


def test_cases_and_the_habits_of_a_user_are_read_once_for_many_checks() -> None:
    read: list[FactsRequest] = []

    def load(asked: FactsRequest) -> Facts:
        read.append(asked)
        users = [user for _, user in asked.users]
        return Facts(screened=[Screened("demo:1@5", "demo", user, 5, {}) for user in users])

    facts = cached_facts(load, lambda: 0.0)
    of_ada = FactsRequest(users=frozenset({("demo", "ada")}), first=1, last=100, cases=True)
    for second in range(5):
        found = facts(FactsRequest(of_ada.users, first=1 + second, last=100 + second, cases=True))
        assert [one.user for one in found.screened] == ["ada"]
        assert not facts(FactsRequest(cases=True)).screened
    assert len(read) == 2, "one for all cases, one for the user"
    [of_bob] = facts(FactsRequest(frozenset({("demo", "bob")}), cases=True)).screened
    assert of_bob.user == "bob"
    for _ in range(2):
        facts(FactsRequest(cases=True, jobs=("demo:1@5",)))
    assert len(read) == 5, "earlier verdicts on a job are read each time"


def test_a_recent_value_is_found_until_it_is_old() -> None:
    clock = [0.0]
    recent: TimedCache[str, int] = TimedCache(10, 2, now=lambda: clock[0])
    assert recent.find("a") is None
    assert recent.get("a", lambda: 1) == recent.find("a") == 1
    clock[0] = 10
    assert recent.find("a") is None
    for name in "abc":
        recent.get(name, lambda: 2)
    assert [recent.find(name) for name in "abc"] == [None, 2, 2]


@pytest.mark.parametrize(
    "failed",
    [
        (None, {"machine": "slurmctld does not answer"}),
        (Machine(cluster="lab", missing={"associations": "slurmdbd does not answer"}), {}),
    ],
)
def test_what_a_user_may_request_is_read_again_soon_if_slurm_did_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: tuple[Machine | None, dict[str, str]]
) -> None:
    """A check went on for five minutes to report an outage that was over."""
    clock, asked = [0.0], list[str]()
    answers: Sequence[tuple[Machine | None, dict[str, str]]] = [failed, (Machine(cluster="lab"), {})]

    def read_machine(_: App, cluster: str, user: str) -> tuple[str, Machine | None, dict[str, str]]:
        asked.append(user)
        return cluster, *answers[len(asked) - 1]

    monkeypatch.setattr(script_checker, "read_machine", read_machine)
    with App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path)}) as app:
        app.home.prepare()
        checker = ScriptChecker(app, Followed("lab", Ledger(), now=lambda: 0.0), now=lambda: clock[0])
        for clock[0] in (0, 9):
            assert checker.prepare("ada") == failed
        for clock[0] in (10, 200):
            assert checker.prepare("ada") == answers[1]
    assert len(asked) == 2
