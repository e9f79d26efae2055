"""Actions are carried out once, renewed, released and undone, wherever the process is killed."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kits.watching import NOON, KillableStore, Killed, ended, frame, running
from tests.slurm.fake_slurm import FakeJob, FakeSlurm
from tocsin.core.actions import ActionKind, ActionStatus, PlannedAction
from tocsin.core.errors import InputError
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.slurm.executor import Executor
from tocsin.store import actions, audit
from tocsin.store.actions import Action, list_actions
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import Filter, load, merge_in

KEY = JobKey("lab", 17, None, NOON)
LEASE = 300
HOUR = 3600


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KillableStore]:
    with open_store(Home(tmp_path / "home").prepare().url) as opened:
        yield KillableStore(opened.engine, opened.timeout)


@pytest.fixture
def fake() -> FakeSlurm:
    return FakeSlurm(jobs={KEY: FakeJob()})


def plan(store: KillableStore, kind: ActionKind = ActionKind.HOLD, **more: Any) -> Action:
    planned = PlannedAction(
        **{
            "job": str(KEY),
            "kind": kind,
            "status": ActionStatus.PLANNED,
            "at": NOON,
            "expires": NOON + HOUR,
            "reason": "mining",
            "detector": "workload",
            "finding": "rogue",
            "stage": Stage.SUBMIT,
            "user": "ann",
            **more,
        }
    )
    with store.writing() as connection:
        assert actions.plan(connection, planned)
    return list_actions(store)[-1]


def executor(store: KillableStore, fake: FakeSlurm, *, act: bool = True) -> Executor:
    """A new one, as after a restart."""
    return Executor(store, fake, lease=LEASE, act=act)


def status(store: KillableStore) -> tuple[str, str]:
    action = list_actions(store)[-1]
    return str(action.status), action.note


# --- holds -------------------------------------------------------------------------------------------


def test_a_planned_hold_is_carried_out_and_expires(store: KillableStore, fake: FakeSlurm) -> None:
    plan(store)
    assert executor(store, fake).step(NOON + 1) == []
    assert fake.jobs[KEY].held == "admin"
    assert status(store) == ("done", "")
    executor(store, fake).step(NOON + HOUR - 1)
    assert fake.jobs[KEY].held == "admin"
    assert executor(store, fake, act=False).expire(NOON + HOUR) == (1, [])
    assert (fake.jobs[KEY].held, fake.jobs[KEY].comment) == ("", "")
    assert status(store) == ("expired", "its time is over")
    trail = [(entry.who, entry.what) for entry in audit.read(store, job=KEY)]
    assert trail[::-1] == [("policy", "hold planned"), ("policy", "hold done"), ("policy", "hold expired")]


@pytest.mark.parametrize("death", range(12))
def test_a_hold_survives_a_kill_at_any_point(store: KillableStore, fake: FakeSlurm, death: int) -> None:
    plan(store)
    for first, instant in ((death, NOON + 1), (death, NOON + HOUR)):
        fake.deaths, store.deaths[:] = [first], [first]
        for _ in range(3):
            with suppress(Killed):
                executor(store, fake).step(instant)
        fake.deaths.clear()
        store.deaths.clear()
        executor(store, fake).step(instant)
        if instant < NOON + HOUR:
            assert (fake.jobs[KEY].held, status(store)[0]) == ("admin", "done")
    assert (fake.jobs[KEY].held, status(store)[0]) == ("", "expired")
    assert [entry.what for entry in audit.read(store, job=KEY)].count("hold done") == 1


def test_the_owners_own_hold_stays_when_ours_ends(store: KillableStore, fake: FakeSlurm) -> None:
    fake.jobs[KEY].held = "user"
    plan(store)
    executor(store, fake).step(NOON + 1)
    assert fake.jobs[KEY].held == "admin"
    executor(store, fake).step(NOON + HOUR)
    assert fake.jobs[KEY].held == "user"


def test_an_administrators_hold_is_not_ours_to_release(store: KillableStore, fake: FakeSlurm) -> None:
    fake.jobs[KEY].held = "admin"
    plan(store)
    executor(store, fake).step(NOON + 1)
    assert status(store) == ("over", "an administrator holds the job already")
    executor(store, fake).step(NOON + HOUR)
    assert fake.jobs[KEY].held == "admin"


def test_a_job_that_has_started_or_gone_is_left_alone(store: KillableStore, fake: FakeSlurm) -> None:
    fake.jobs[KEY].pending = False
    plan(store)
    executor(store, fake).step(NOON + 1)
    assert status(store) == ("over", "the job was no longer pending")
    plan(store, ActionKind.CANCEL, job=str(KEY._replace(job_id=99)), expires=None)
    executor(store, fake).step(NOON + 1)
    assert status(store) == ("over", "the job has left the queue")
    assert fake.changes == []


def test_the_hold_of_an_array_is_over_when_its_owner_cancels_it(
    store: KillableStore, fake: FakeSlurm
) -> None:
    with store.writing() as connection:
        merge_in(connection, frame({"job_id": 17, "array": "1-4"}))
    plan(store)
    executor(store, fake).step(NOON + 1)
    assert status(store)[0] == "done"
    with store.writing() as connection:
        merge_in(connection, frame({"job_id": 17, "array": "1-4", **ended(None, NOON + 60, "CANCELLED")}))
    executor(store, fake).step(NOON + 61)
    assert status(store) == ("over", "the job was no longer pending")


def test_a_cluster_that_does_not_answer_is_asked_again_for_ten_minutes(
    store: KillableStore, fake: FakeSlurm
) -> None:
    plan(store)
    fake.down = True
    [problem] = executor(store, fake).step(NOON + 1)
    assert "slurmctld does not answer" in problem
    assert status(store) == ("planned", "slurmctld does not answer")
    executor(store, fake).step(NOON + 601)
    assert status(store)[0] == "failed"


def test_a_hold_stays_in_force_while_the_cluster_does_not_answer(
    store: KillableStore, fake: FakeSlurm
) -> None:
    plan(store)
    executor(store, fake).step(NOON + 1)
    fake.down = True
    executor(store, fake).step(NOON + 2 * HOUR)
    assert status(store)[0] == "done"
    released, [problem] = executor(store, fake).expire(NOON + 2 * HOUR)
    assert (released, "slurmctld does not answer" in problem) == (0, True)
    fake.down = False
    executor(store, fake).step(NOON + 3 * HOUR)
    assert fake.jobs[KEY].held == ""


def test_what_was_planned_is_dropped_when_policy_may_act_no_more(
    store: KillableStore, fake: FakeSlurm
) -> None:
    plan(store)
    executor(store, fake, act=False).step(NOON + 1)
    assert status(store) == ("undone", "policy.mode is not act any more")
    assert fake.changes == []


def test_a_hold_is_over_when_its_job_is_cancelled_by_others(store: KillableStore, fake: FakeSlurm) -> None:
    plan(store)
    executor(store, fake).step(NOON + 1)
    with store.writing() as connection:
        merge_in(connection, frame({"job_id": 17, **ended(None, NOON + 9, "CANCELLED")}))
    fake.down = True  # it need not be asked
    executor(store, fake).step(NOON + 10)
    assert status(store)[0] == "over"


# --- leases ------------------------------------------------------------------------------------------


def test_a_lease_is_renewed_until_its_time_is_over(store: KillableStore, fake: FakeSlurm) -> None:
    plan(store, ActionKind.LEASE)
    job = fake.jobs[KEY]
    for now in range(NOON, NOON + HOUR, 10):
        executor(store, fake).step(now)
        assert job.begin
        assert now < job.begin <= now + LEASE, "it ends by itself soon after the last renewal"
    delays = [change for change in fake.changes if change.startswith("delay")]
    assert len(delays) <= 2 + 2 * HOUR / LEASE, "Slurm is not asked more often than needed"
    executor(store, fake).step(NOON + HOUR)
    assert job.begin == NOON + HOUR
    assert status(store)[0] == "expired"


def test_a_later_start_of_the_users_own_is_kept_and_restored(store: KillableStore, fake: FakeSlurm) -> None:
    job = fake.jobs[KEY]
    job.begin = NOON + 1000
    action = plan(store, ActionKind.LEASE)
    executor(store, fake).step(NOON)
    assert job.begin == NOON + 1000, "it is late enough"
    executor(store, fake).step(NOON + 900)
    assert job.begin == NOON + 1200
    executor(store, fake).undo(list_actions(store)[-1], who="ann", now=NOON + 950)
    assert job.begin == NOON + 1000
    assert actions.find(store, action.id).note == "undone by ann"


def test_an_owner_who_moves_the_start_ends_the_lease(store: KillableStore, fake: FakeSlurm) -> None:
    plan(store, ActionKind.LEASE)
    executor(store, fake).step(NOON)
    fake.jobs[KEY].begin = NOON + 5
    executor(store, fake).step(NOON + 290)
    assert status(store) == ("undone", "the owner of the job moved its start")
    assert fake.jobs[KEY].begin == NOON + 5


def test_an_owner_who_moves_the_start_back_further_keeps_that(store: KillableStore, fake: FakeSlurm) -> None:
    plan(store, ActionKind.LEASE)
    executor(store, fake).step(NOON)
    fake.jobs[KEY].begin = NOON + 2 * HOUR
    executor(store, fake).step(NOON + 290)
    executor(store, fake).step(NOON + HOUR)
    assert fake.jobs[KEY].begin == NOON + 2 * HOUR


@pytest.mark.parametrize("death", range(14))
def test_a_lease_survives_a_kill_at_any_point(store: KillableStore, fake: FakeSlurm, death: int) -> None:
    fake.jobs[KEY].begin = own = NOON + 100
    plan(store, ActionKind.LEASE)
    instants = [NOON, NOON + 200, NOON + 400, NOON + HOUR]
    for instant in instants:
        fake.deaths, store.deaths[:] = [death], [death]
        for second in range(3):
            with suppress(Killed):
                executor(store, fake).step(instant + second)
        fake.deaths.clear()
        store.deaths.clear()
        executor(store, fake).step(instant + 3)
        begin = fake.jobs[KEY].begin
        assert begin
        assert begin >= own
        if instant < NOON + HOUR:
            assert (status(store)[0], begin > instant + LEASE / 2) == ("done", True)
    assert status(store)[0] == "expired"
    assert begin <= NOON + HOUR + 3


# --- undo --------------------------------------------------------------------------------------------


def test_undo_takes_back_what_is_planned_and_what_is_in_force(store: KillableStore, fake: FakeSlurm) -> None:
    hold, comment = plan(store), plan(store, ActionKind.COMMENT, expires=None)
    executor(store, fake).undo(hold, who="ann", now=NOON, note="false alarm")
    assert actions.find(store, hold.id).note == "undone by ann: false alarm"
    executor(store, fake).step(NOON + 1)
    assert (fake.jobs[KEY].held, fake.jobs[KEY].comment) == ("", "mining")
    executor(store, fake).undo(actions.find(store, comment.id), who="ann", now=NOON)
    assert fake.jobs[KEY].comment == ""
    with pytest.raises(InputError, match="is undone; there is nothing to undo"):
        executor(store, fake).undo(actions.find(store, hold.id), who="ann", now=NOON)


def test_a_cancelled_job_cannot_be_brought_back(store: KillableStore, fake: FakeSlurm) -> None:
    cancel = plan(store, ActionKind.CANCEL, expires=None)
    executor(store, fake).step(NOON + 1)
    assert fake.jobs[KEY].cancelled
    with pytest.raises(InputError, match="cannot be undone; submit the job again"):
        executor(store, fake).undo(actions.find(store, cancel.id), who="ann", now=NOON)


# --- intervened --------------------------------------------------------------------------------------


def test_a_job_that_was_acted_on_is_marked_and_one_in_shadow_is_not(
    store: KillableStore, fake: FakeSlurm
) -> None:
    with store.writing() as connection:
        merge_in(connection, frame({"job_id": 17}, {"job_id": 18}))
    plan(store)
    plan(store, job=str(KEY._replace(job_id=18)), status=ActionStatus.SHADOW)
    executor(store, fake).step(NOON + 1)
    found = load(store, Filter(clusters=["lab"], order="submit"), ["job_id", "intervened"]).sort("job_id")
    assert found["intervened"].to_list() == [True, None]


def test_of_an_array_only_tasks_that_started_later_are_marked(store: KillableStore, fake: FakeSlurm) -> None:
    def task(number: int, **more: Any) -> dict[str, Any]:
        return {"job_id": 17, "task": number, "raw_id": 17 + number, **more}

    with store.writing() as connection:
        merge_in(
            connection, frame({"job_id": 17, "array": "1-4"}, task(1, **ended(NOON + 1, NOON + 5, "FAILED")))
        )
    plan(store, ActionKind.LEASE)
    executor(store, fake).step(NOON + 10)
    with store.writing() as connection:
        merge_in(connection, frame(task(2, **running(NOON + 400))))
    executor(store, fake).step(NOON + 401)
    found = load(store, Filter(clusters=["lab"], arrays=True), ["task", "intervened"])
    assert dict(found.rows()) == {None: True, 1: None, 2: True}


# --- many --------------------------------------------------------------------------------------------


@pytest.fixture
def many(store: KillableStore, fake: FakeSlurm) -> list[JobKey]:
    """Jobs with leases that are in force."""
    keys = [KEY._replace(job_id=number) for number in range(1, 51)]
    fake.jobs |= {key: FakeJob() for key in keys}
    for key in keys:
        plan(store, ActionKind.LEASE, job=str(key))
    executor(store, fake).step(NOON)
    fake.changes.clear()
    return keys


def test_many_leases_are_renewed_together(store: KillableStore, fake: FakeSlurm, many: list[JobKey]) -> None:
    fake.jobs[many[0]].begin = NOON + 5  # its owner moved the start
    fake.jobs[many[1]].pending = False
    del fake.jobs[many[2]]
    executor(store, fake).step(NOON + 200)
    assert [fake.jobs[key].begin for key in many[3:]] == [NOON + 500] * 47
    assert fake.together == [17, 20, 10], "by one change for each few"
    assert {a.status for a in list_actions(store) if a.job in many[3:]} == {ActionStatus.DONE}
    assert [str(a.status) for a in list_actions(store) if a.job in many[:3]] == ["undone", "over", "over"]


def test_renewals_that_take_long_are_left_for_the_next_step_the_most_urgent_first(
    store: KillableStore, fake: FakeSlurm, many: list[JobKey]
) -> None:
    clock = [0.0]

    def step(now: int) -> None:
        slow = Executor(store, fake, lease=LEASE, act=True, seconds=lambda: clock[0])
        slow.step(now, within=1)

    fake.changed = lambda: clock.__setitem__(0, clock[0] + 0.1)
    step(NOON + 200)
    assert [fake.jobs[key].begin for key in many] == [NOON + 500] * 20 + [NOON + 300] * 30
    plan(store)
    step(NOON + 201)
    assert fake.jobs[KEY].held == "admin", "a hold does not wait for renewals"
    step(NOON + 202)
    assert all((fake.jobs[key].begin or 0) >= NOON + 500 for key in many)


@pytest.mark.parametrize("death", range(8))
def test_leases_that_are_renewed_together_survive_a_kill_at_any_point(
    store: KillableStore, fake: FakeSlurm, many: list[JobKey], death: int
) -> None:
    fake.deaths, store.deaths[:] = [death], [death]
    with suppress(Killed):
        executor(store, fake).step(NOON + 200)
    fake.deaths.clear()
    store.deaths.clear()
    executor(store, fake).step(NOON + 201)
    assert {a.status for a in list_actions(store)} == {ActionStatus.DONE}, "no owner moved anything"
    for action in list_actions(store):
        executor(store, fake).undo(action, who="ann", now=NOON + 210)
    assert {fake.jobs[key].begin for key in many} == {NOON + 210}


def test_what_is_carried_out_in_a_hurry_is_explained_in_the_next_step(
    store: KillableStore, fake: FakeSlurm
) -> None:
    other = KEY._replace(job_id=1)
    fake.jobs[other] = FakeJob()
    plan(store, ActionKind.LEASE)
    undone = plan(store, ActionKind.LEASE, job=str(other))
    hurried = executor(store, fake)
    hurried.carry_out_planned([str(KEY), str(other)], NOON)
    assert fake.changes == [f"delay {NOON + LEASE}"] * 2
    executor(store, fake).undo(actions.find(store, undone.id), who="ann", now=NOON + 1)
    hurried.step(NOON + 1)
    assert (fake.jobs[KEY].comment, fake.jobs[other].comment) == ("mining", "")


# --- order -------------------------------------------------------------------------------------------


def test_a_hold_is_carried_out_before_leases_that_were_planned_earlier(
    store: KillableStore, fake: FakeSlurm
) -> None:
    keys = [KEY._replace(job_id=number) for number in range(1, 5)]
    fake.jobs |= {key: FakeJob() for key in keys}
    for key in keys:
        plan(store, ActionKind.LEASE, job=str(key))
    plan(store, ActionKind.HOLD)
    executor(store, fake).step(NOON + 1)
    assert fake.changes[0] == "hold"
    assert {action.status for action in list_actions(store)} == {"done"}


def test_only_what_is_planned_on_the_jobs_at_hand_is_carried_out_at_once(
    store: KillableStore, fake: FakeSlurm
) -> None:
    other = KEY._replace(job_id=1)
    fake.jobs[other] = FakeJob()
    plan(store, ActionKind.LEASE, job=str(other))
    plan(store)
    assert executor(store, fake).carry_out_planned([str(KEY)], NOON + 1) == []
    assert fake.changes == ["hold"]
    assert executor(store, fake).carry_out_planned([str(KEY)], NOON + 1) == []
    assert fake.changes == ["hold"], "it is done once"
