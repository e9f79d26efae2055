"""Acting in a round and after it, advice as text, and what users may do to their own jobs."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.kits.command_line import Tocsin
from tests.kits.live_service import MINER
from tests.kits.watching import NOON, FakeCluster, ended, frame
from tests.slurm.fake_slurm import FakeJob, FakeSlurm
from tocsin.app import watch as app_watch
from tocsin.app.actions import Acting, ActionRequest, expire, list_actions, undo
from tocsin.app.advice import advice_text
from tocsin.app.app import App
from tocsin.app.followed import Source, _watcher
from tocsin.app.loop import Output
from tocsin.app.own_jobs import cancel_job, link_resubmission, resubmissions
from tocsin.core.actions import ActionKind, ActionStatus, PlannedAction
from tocsin.core.decision import Decision
from tocsin.core.errors import InputError, NotFound
from tocsin.core.ids import JobKey
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Failure, Finding, Level, Verdict
from tocsin.store import audit
from tocsin.store.actions import plan, planned_since
from tocsin.store.decisions import record
from tocsin.store.jobs import Filter, load, merge_in
from tocsin.watch.loop import Stop


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    environment = {"HOME": str(tmp_path), "TOCSIN_POLICY__MODE": "act", "TOCSIN_POLICY__CONTROL_PERCENT": "0"}
    with App(None, str(tmp_path / "home"), environment) as opened:
        yield opened


def keep(app: App, *rows: dict[str, Any]) -> None:
    with app.store.writing() as connection:
        merge_in(connection, frame(*rows))


def verdict(job: JobKey, stage: Stage = Stage.SUBMIT, **more: Any) -> Verdict:
    return Verdict(job=str(job), stage=stage, at=NOON, known_until=NOON, level=Level.OK, **more)


ARRAY = JobKey("lab", 17, None, NOON)


def task(number: int, **more: Any) -> dict[str, Any]:
    return {"job_id": 17, "task": number, "raw_id": 17 + number, **more}


def test_when_the_first_tasks_of_an_array_fail_for_one_cause_the_rest_is_leased(app: App) -> None:
    fake = FakeSlurm(jobs={ARRAY: FakeJob(begin=NOON)})
    acting = Acting(app, fake)
    keep(app, {"job_id": 17, "array": "1-9", "array_tasks": 9})
    for number in (1, 2, 3):
        keep(app, task(number, **ended(NOON + 1, NOON + 10 + number, "TIMEOUT")))
        assert acting.after_round([verdict(ARRAY._replace(task=number), Stage.END)], NOON + 20) == []
        assert (fake.jobs[ARRAY].begin == NOON) == (number < 3)
    [action] = list_actions(app, ActionRequest())
    assert (str(action.job), action.kind, action.finding) == (str(ARRAY), "lease", "array_failing")
    assert action.reason == "the first 3 tasks of the array all ended with timeout"
    # The tasks that failed by themselves are still labels; the ones that were put off are not.
    marks = load(app.store, Filter(clusters=["lab"], arrays=True), ["task", "intervened"])
    assert dict(marks.rows()) == {None: True, 1: None, 2: None, 3: None}


def test_an_array_with_one_success_among_its_first_tasks_is_left_alone(app: App) -> None:
    fake = FakeSlurm(jobs={ARRAY: FakeJob()})
    keep(app, {"job_id": 17, "array": "1-9"}, task(1, **ended(NOON, NOON + 5)))
    for number in (2, 3, 4):
        keep(app, task(number, **ended(NOON + 1, NOON + 10 + number, "FAILED")))
    Acting(app, fake).after_round([verdict(ARRAY._replace(task=4), Stage.END)], NOON + 20)
    assert list_actions(app, ActionRequest(everything=True)) == []


@dataclass(frozen=True)
class Instant:
    """A clock that stands."""

    at: float

    def now(self) -> float:
        return self.at


def test_a_miner_is_held_in_the_midst_of_the_round_that_finds_it(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, fake = FakeCluster(queued=[{}], scripts={1: MINER}), FakeSlurm()
    fake.jobs[JobKey("lab", 1, None, NOON)] = FakeJob()
    noon = Instant(NOON + 1)
    source = Source(
        name="lab",
        clock=noon,
        reading=noon.now,
        interval=1,
        rounds=partial(_watcher, app, cluster, None),
        live=False,
        actuator=fake,
    )

    class Listener(app_watch.Observer):
        def stored(self) -> None:
            fake.changes.append("announced")

    monkeypatch.setattr(app_watch, "live_slurm", lambda *_, **__: nullcontext(source))
    with Stop() as stop:
        request = app_watch.WatchRequest(cluster="lab", once=True)
        app_watch.follow(app, request, Output(fake.changes.append), stop, Listener())
    announced, held, *printed = fake.changes
    assert (announced, held) == ("announced", "hold"), "clients hear of it as soon as it is stored"
    assert "cryptomining" in "".join(printed), "it is printed when the round is over"


def test_in_advice_mode_nothing_is_planned(app: App) -> None:
    app.environ = {**app.environ, "TOCSIN_POLICY__MODE": "advise"}
    keep(
        app, {"job_id": 17, "array": "1-9"}, *(task(n, **ended(NOON, NOON + n, "FAILED")) for n in (1, 2, 3))
    )
    Acting(app, FakeSlurm()).after_round([verdict(ARRAY._replace(task=3), Stage.END)], NOON + 20)
    assert list_actions(app, ActionRequest(everything=True)) == []


def test_advice_is_a_few_printable_lines_and_nothing_for_a_job_that_is_fine() -> None:
    fine = verdict(ARRAY)
    assert advice_text(fine) == ""
    assert advice_text(replace(fine, level=Level.UNKNOWN)) == ""
    findings = [
        Finding(
            detector="failure", kind="will_fail", level=Level.WARNING, text="likely to fail\x1b[2J (91%)"
        ),
        Finding(detector="limits", kind="note", level=Level.OK, text="a note"),
    ]
    change = Advice(change="request --mem=4G", why="it ran out", risk_before=0.91, risk_after=0.12)
    text = advice_text(replace(fine, level=Level.WARNING, findings=findings, advice=[change]))
    assert text == (
        "tocsin: warning: check this before you submit it.\n"
        "tocsin:   likely to fail\\x1b[2J (91%)\n"
        "tocsin:   → request --mem=4G (risk 91% → 12%)\n"
    )
    many = advice_text(replace(fine, level=Level.WARNING, findings=findings[:1] * 50))
    assert many.count("\n") == 13


def risk(job: JobKey, probability: float) -> Decision:
    failure = Failure(
        probability=probability, threshold=0.5, will_fail=probability >= 0.5, target=Target.FAILED
    )
    return Decision(verdicts=[verdict(job, failure=failure)])


def test_a_resubmission_is_linked_and_the_difference_in_risk_shown(app: App) -> None:
    old, new = ARRAY, ARRAY._replace(job_id=18, submit=NOON + 60)
    record(app.store, risk(old, 0.91))
    linked = link_resubmission(app, str(old), str(new), who="ann", risk_after=0.2)
    assert (linked.risk_before, linked.risk_after) == (0.91, 0.2)
    record(app.store, risk(new, 0.12))
    [linked] = resubmissions(app, str(old))
    assert (linked.new, linked.who, linked.risk_before, linked.risk_after) == (str(new), "ann", 0.91, 0.12)
    with pytest.raises(InputError, match="of itself"):
        link_resubmission(app, str(old), str(old), who="ann")


def test_users_cannot_cancel_the_jobs_of_others(app: App) -> None:
    keep(app, {"job_id": 17, "user": "ann"})
    with pytest.raises(NotFound, match="no job 17 of user bob"):
        cancel_job(app, "17", who="bob")
    assert list_actions(app, ActionRequest(everything=True)) == []
    assert audit.read(app.store) == []


def test_owners_cancel_their_job_even_if_policy_had_only_recorded_that(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSlurm(jobs={ARRAY: FakeJob()})
    monkeypatch.setattr("tocsin.app.own_jobs.live_cluster", lambda app, name: nullcontext(fake))
    keep(app, {"job_id": 17, "user": "ann"})
    recorded = PlannedAction(
        job=str(ARRAY),
        kind=ActionKind.CANCEL,
        status=ActionStatus.SHADOW,
        at=NOON,
        reason="likely to fail",
        detector="failure",
        finding="will_fail",
        stage=Stage.SUBMIT,
        user="ann",
    )
    with app.store.writing() as connection:
        plan(connection, recorded)
    assert cancel_job(app, "17", who="ann").status is ActionStatus.DONE
    assert fake.jobs[ARRAY].cancelled
    assert audit.read(app.store)[0].who == "ann"
    with app.store.reading() as connection:
        assert planned_since(connection, 0) == [], "it counts for no limit"
    assert cancel_job(app, "17", who="ann").status is ActionStatus.DONE
    assert fake.changes == ["cancel"], "the second time changes nothing"


def test_owners_who_cancel_their_jobs_use_up_no_limit(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeSlurm(jobs={ARRAY: FakeJob()})
    monkeypatch.setattr("tocsin.app.own_jobs.live_cluster", lambda app, name: nullcontext(fake))
    keep(app, {"job_id": 17, "user": "ann"})
    assert cancel_job(app, "17", who="ann").status is ActionStatus.DONE
    with app.store.reading() as connection:
        assert planned_since(connection, 0) == []


def test_a_finished_cancellation_is_neither_planned_nor_in_force(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSlurm(jobs={ARRAY: FakeJob()})
    monkeypatch.setattr("tocsin.app.own_jobs.live_cluster", lambda app, name: nullcontext(fake))
    keep(app, {"job_id": 17, "user": "ann"})
    cancel_job(app, "17", who="ann")
    assert list_actions(app, ActionRequest()) == []
    assert [action.kind for action in list_actions(app, ActionRequest(everything=True))] == ["cancel"]
    assert undo(app, everything=True) == []
    assert expire(app) == [], "there is nothing to release, so no cluster is asked"


def test_the_commands_list_and_refuse_in_words(tocsin: Tocsin) -> None:
    assert "no action is planned or in force" in tocsin("actions").err
    assert json.loads(tocsin("actions", "--all", "--json").out) == {"actions": []}
    missing = tocsin("undo", "7")
    assert (missing.code, missing.err) == (1, "tocsin: no action 7; list them with: tocsin actions --all\n")
    assert tocsin("undo").code == 2
    assert tocsin("undo", "--all").code == 0
    assert tocsin("expire").code == 0
