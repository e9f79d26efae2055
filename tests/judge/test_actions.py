"""Actions: planned by policy on a verdict, within limits, written with it; and the settings behind them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.judge.test_judge import seat
from tests.kits.watching import NOON, frame
from tocsin.app.app import App
from tocsin.app.policy import action_policy
from tocsin.core.actions import PEOPLE, ActionKind, ActionStatus, Mode, PlannedAction
from tocsin.core.detector import Parts
from tocsin.core.errors import SettingsError
from tocsin.core.stages import Stage
from tocsin.core.verdict import CaseStatus, Finding, Level
from tocsin.history.ledger import Ledger
from tocsin.judge.actions import HOUR, failing_array, is_control
from tocsin.judge.answers import DetectorModels
from tocsin.judge.judge import Judge
from tocsin.judge.policy import DEFAULT_RULES, ActionPolicy, ActionRule, Policy, Rule
from tocsin.store import cases
from tocsin.store.actions import Action, list_actions, plan, settle
from tocsin.store.database import Store, open_store
from tocsin.store.decisions import load_facts, record
from tocsin.store.home import Home

ACT = ActionPolicy(mode=Mode.ACT, rules=DEFAULT_RULES, lease=HOUR, hold=24 * HOUR)
WILL_FAIL = Finding(
    detector="failure", kind="will_fail", level=Level.WARNING, text="likely to fail", score=0.9
)
ROGUE = Finding(detector="workload", kind="rogue", level=Level.CRITICAL, text="mining", score=0.99)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield opened


def seats(*findings: Finding) -> dict[str, DetectorModels]:
    """A detector for each finding."""
    return {
        each.detector: seat(lambda row, each=each: Parts(findings=[each]))  # type: ignore[misc]
        for each in findings
    }


def planned(
    store: Store,
    policy: ActionPolicy,
    *findings: Finding,
    stage: Stage = Stage.SUBMIT,
    at: int = NOON,
    cases: tuple[Rule, ...] = (),
    **job: Any,
) -> Action | None:
    """What policy decides on a job with these findings; it is stored with the verdict."""
    judge = Judge(seats(*findings), Policy(cases, policy), facts=partial(load_facts, store))
    jobs = frame(
        {"submit": at, "state": "RUNNING", "start": at, **job}
        if stage is not Stage.SUBMIT
        else {"submit": at, **job}
    )
    decision = judge.decide(jobs, stage, known=Ledger(), at=at)
    before = len(list_actions(store))
    record(store, decision)
    record(store, decision)  # the same again changes nothing
    now = list_actions(store)
    assert len(now) <= before + 1
    return now[-1] if len(now) > before else None


def test_a_job_that_will_fail_is_leased_and_a_rogue_one_is_held(store: Store) -> None:
    lease = planned(store, ACT, WILL_FAIL, job_id=1)
    assert lease
    assert (lease.kind, lease.status, lease.expires) == ("lease", "planned", NOON + HOUR)
    hold = planned(store, ACT, WILL_FAIL, ROGUE, job_id=2)
    assert hold
    assert (hold.kind, hold.expires, hold.reason, hold.user) == ("hold", NOON + 24 * HOUR, "mining", "ann")


def test_without_an_alarm_there_is_no_action(store: Store) -> None:
    assert planned(store, ACT, replace(WILL_FAIL, level=Level.OK)) is None
    assert planned(store, ACT, replace(WILL_FAIL, kind="short_of_memory"), job_id=2) is None


def test_what_runs_is_neither_held_nor_leased_but_may_be_cancelled(store: Store) -> None:
    assert planned(store, ACT, ROGUE, stage=Stage.START) is None
    strict = replace(ACT, rules=[ActionRule(name="x", kind="rogue", action=ActionKind.CANCEL)])
    action = planned(store, strict, ROGUE, stage=Stage.START, job_id=2)
    assert action
    assert action.kind is ActionKind.CANCEL


def test_in_shadow_mode_actions_are_recorded_and_advice_records_none(store: Store) -> None:
    shadow = planned(store, replace(ACT, mode=Mode.SHADOW), ROGUE)
    assert shadow
    assert shadow.status is ActionStatus.SHADOW
    assert planned(store, replace(ACT, mode=Mode.ADVISE), ROGUE, job_id=2) is None


def test_excluded_users_accounts_partitions_and_qos_are_never_touched(store: Store) -> None:
    job = {"user": "ann", "account": "proj", "partition": "long,debug", "qos": "urgent"}
    for number, (field, value) in enumerate({**job, "partition": "debug"}.items(), 1):
        policy = replace(ACT, excluded={field: {value}})
        assert planned(store, policy, ROGUE, job_id=number, **job) is None, field
    assert planned(store, replace(ACT, excluded={"user": {"bob"}}), ROGUE, job_id=9, **job)


def test_limits_count_the_actions_of_the_last_hour_per_user_and_in_all(store: Store) -> None:
    policy = replace(ACT, per_user_hour=2, per_hour=3)

    def status(user: str, number: int, at: int = NOON) -> str:
        action = planned(store, policy, WILL_FAIL, user=user, job_id=number, at=at)
        assert action
        return str(action.status)

    assert [status("ann", 1), status("ann", 2), status("ann", 3)] == ["planned", "planned", "limited"]
    assert [status("bob", 4), status("bob", 5)] == ["planned", "limited"]
    assert status("ann", 6, NOON + HOUR) == "planned"


def test_limits_hold_within_one_batch(store: Store) -> None:
    policy = Policy((), replace(ACT, per_hour=2))
    for finding, names in ((WILL_FAIL, "aaaaa"), (ROGUE, "abcde")):
        judge = Judge(seats(finding), policy, facts=partial(load_facts, store))
        jobs = frame(*({"job_id": number, "user": user} for number, user in enumerate(names, 1)))
        decision = judge.decide(jobs, Stage.SUBMIT, known=Ledger(), at=NOON)
        assert [str(action.status) for action in decision.actions] == ["planned"] * 2 + ["limited"] * 3


def test_for_misuse_users_are_counted_so_nobody_can_use_up_the_limits(store: Store) -> None:
    policy = replace(ACT, per_user_hour=1, per_hour=2)

    def status(finding: Finding, user: str, number: int) -> str:
        action = planned(store, policy, finding, user=user, job_id=number)
        assert action
        return str(action.status)

    assert [status(WILL_FAIL, "eve", 1), status(WILL_FAIL, "eve", 2)] == ["planned", "limited"]
    assert [status(ROGUE, "eve", number) for number in range(3, 9)] == ["planned"] * 6
    assert status(ROGUE, "bob", 10) == "planned"
    assert status(ROGUE, "ann", 11) == "limited", "a third user: the detector may be wrong"
    assert status(WILL_FAIL, "ann", 12) == "planned", "misuse does not use up the other limits"


def test_what_people_asked_for_undid_or_dismissed_does_not_count_for_limits(store: Store) -> None:
    policy = replace(ACT, per_user_hour=1, per_hour=1)
    rules = (Rule(kind="will_fail", level=Level.WARNING, subject="name"),)
    own = PlannedAction(
        job=f"lab:1@{NOON}",
        kind=ActionKind.CANCEL,
        status=ActionStatus.PLANNED,
        at=NOON,
        reason="ann asked for it",
        detector=PEOPLE,
        finding="request",
        stage=Stage.SUBMIT,
        user="ann",
    )
    with store.writing() as connection:
        plan(connection, own, who="ann")
    first = planned(store, policy, WILL_FAIL, cases=rules, job_id=2, name="a")
    assert first
    assert first.status is ActionStatus.PLANNED, "her own request does not count"
    settle(store, first, ActionStatus.UNDONE, at=NOON, who="root")
    second = planned(store, policy, WILL_FAIL, cases=rules, job_id=3, name="b")
    assert second
    assert second.status is ActionStatus.PLANNED, "an undone action does not count"
    assert second.case
    cases.answer(store, second.case, CaseStatus.DISMISSED, who="root", at=NOON)
    third = planned(store, policy, WILL_FAIL, cases=rules, job_id=4, name="c")
    assert third
    assert third.status is ActionStatus.PLANNED, "an action of a dismissed case does not count"
    fourth = planned(store, policy, WILL_FAIL, cases=rules, job_id=5, name="d")
    assert fourth
    assert fourth.status is ActionStatus.LIMITED


def test_the_control_share_is_left_alone_except_for_misuse(store: Store) -> None:
    policy = replace(ACT, control=1.0)
    control, misuse = planned(store, policy, WILL_FAIL, job_id=1), planned(store, policy, ROGUE, job_id=2)
    assert control
    assert misuse
    assert (control.status, misuse.status) == ("control", "planned")


def test_the_control_share_is_as_large_as_stated_and_the_same_after_a_restart() -> None:
    jobs = [f"lab:{number}@{NOON}" for number in range(20_000)]
    chosen = [job for job in jobs if is_control(job, 0.1)]
    assert 0.09 < len(chosen) / len(jobs) < 0.11
    assert chosen == [job for job in jobs if is_control(job, 0.1)]


def test_an_action_knows_its_case_and_whether_it_was_dismissed(store: Store) -> None:
    rules = (Rule(kind="will_fail", level=Level.WARNING),)
    action = planned(store, ACT, WILL_FAIL, cases=rules)
    assert action
    assert (action.case, action.dismissed) == (1, False)
    cases.answer(store, 1, CaseStatus.DISMISSED, who="ann", at=NOON)
    [action] = list_actions(store)
    assert action.dismissed
    assert planned(store, ACT, WILL_FAIL, cases=rules, job_id=2) is None, (
        "a dismissed case leads to no action"
    )


def test_a_score_below_the_rules_leads_to_no_action(store: Store) -> None:
    sure = replace(
        ACT, rules=[ActionRule(name="sure", kind="will_fail", score=0.95, action=ActionKind.LEASE)]
    )
    assert planned(store, sure, WILL_FAIL) is None
    assert planned(store, sure, replace(WILL_FAIL, score=0.96), job_id=2)


def test_an_array_whose_first_tasks_fail_for_one_cause_is_a_finding() -> None:
    policy, row = replace(ACT, array_failures=3), {"user": "ann"}
    verdict = failing_array("lab:7@1", row, ["timeout"] * 3 + ["completed"], policy, NOON)
    assert verdict
    assert verdict.findings[0].text == "the first 3 tasks of the array all ended with timeout"
    for outcomes in (["timeout"] * 2, ["timeout", "failed", "timeout"], ["completed"] * 3, ["cancelled"] * 3):
        assert failing_array("lab:7@1", row, outcomes, policy, NOON) is None
    assert failing_array("lab:7@1", row, ["failed"] * 9, ACT, NOON) is None, "it is switched off"


def settings(tmp_path: Path, text: str) -> App:
    file = tmp_path / "tocsin.toml"
    file.write_text(text)
    return App(str(file), str(tmp_path / "home"), {"HOME": str(tmp_path)})


def test_policy_is_read_from_the_settings_and_shadow_is_the_default(tmp_path: Path) -> None:
    policy = action_policy(settings(tmp_path, ""))
    assert (policy.mode, policy.rules, policy.control) == (Mode.SHADOW, DEFAULT_RULES, 0.1)
    text = '[policy]\nmode = "act"\nexclude_users = "root, ann"\n[rule.miners]\nkind = "rogue"\naction = "cancel"\n'
    policy = action_policy(settings(tmp_path, text))
    assert policy.mode is Mode.ACT
    assert policy.excluded == {"user": {"root", "ann"}}
    assert [(rule.name, rule.action) for rule in policy.rules] == [("miners", "cancel")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[policy]\nmode = "auto"', 'policy.mode is "auto"; it must be one of advise, shadow, act'),
        ("[policy]\nlease_seconds = 7200", "policy.lease_seconds is 7200; it must be 10 to 3600"),
        ("[policy]\nhold_hours = 0", "policy.hold_hours is 0"),
        ("[policy]\ncontrol_percent = 101", "policy.control_percent is 101; it must be 0 to 100"),
        (
            '[rule.x]\naction = "kill"',
            'rule.x.action is "kill"; it must be one of notify, comment, lease, hold, cancel',
        ),
        ('[rule.x]\nlevel = "ok"', 'rule.x.level is "ok"'),
        ('[rule.x]\naction = "hold"', 'rule.x holds jobs for findings of kind "*"'),
        ('[rule.x]\nwho = "ann"', '"who" in'),
    ],
)
def test_a_wrong_policy_is_refused_with_the_setting_and_its_value(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(SettingsError) as error:
        action_policy(settings(tmp_path, text))
    assert sentence in str(error.value)
