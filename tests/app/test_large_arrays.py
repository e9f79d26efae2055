"""An array of many tasks: asking about it takes no statement for each task, which took the service half a minute."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.kits.job_frames import frame
from tocsin.app.actions import actions_on
from tocsin.app.app import App
from tocsin.app.jobs import show_job
from tocsin.app.own_jobs import resubmissions
from tocsin.core.actions import PEOPLE, ActionKind, ActionStatus, PlannedAction
from tocsin.core.decision import Decision
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.store.actions import plan, planned_on
from tocsin.store.decisions import record
from tocsin.store.jobs import upsert

TASKS = 50
SUBMIT = 1_794_775_393


def statements(app: App, ask: Callable[[], Any]) -> int:
    made: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        made.append(statement)

    sa.event.listen(app.store.engine, "before_cursor_execute", note)
    try:
        ask()
    finally:
        sa.event.remove(app.store.engine, "before_cursor_execute", note)
    return len(made)


@pytest.fixture
def app(tmp_path: Path) -> App:
    made = App(folder=str(tmp_path), environ={})
    tasks = [{"job_id": 17, "task": task, "user": "ann"} for task in range(TASKS)]
    upsert(made.store, frame(*tasks, {"job_id": 18, "user": "ann"}, {"job_id": 19, "user": "bob"}))
    return made


def test_its_jobs_verdicts_and_resubmissions_take_a_few_statements(app: App) -> None:
    whole = [str(each.key) for each in show_job(app, "17", None)]
    assert len(whole) == TASKS
    assert statements(app, lambda: show_job(app, "17", None)) < 20
    assert statements(app, lambda: resubmissions(app, *whole)) < 20
    app.close()


def test_a_task_has_the_verdict_that_its_array_got_when_it_was_submitted(app: App) -> None:
    [task] = show_job(app, "17_4", None)
    array = task.key._replace(task=None)
    of_array = Verdict(job=str(array), stage=Stage.SUBMIT, at=SUBMIT, known_until=SUBMIT, level=Level.WARNING)
    at_start = replace(of_array, job=str(task.key), stage=Stage.START, level=Level.OK)
    record(app.store, Decision(verdicts=[of_array, at_start, replace(of_array, stage=Stage.END)]))
    [task] = show_job(app, "17_4", None)
    assert [(each.stage, each.level) for each in task.verdicts] == [
        (Stage.SUBMIT, Level.WARNING),
        (Stage.START, Level.OK),
    ]
    upsert(app.store, frame({"job_id": 17, "user": "ann", "array": "0-49"}))
    whole = {each.key: each.verdicts for each in show_job(app, "17", None)}
    assert len(whole[array]) == 2
    assert [each.stage for each in whole[task.key]] == [Stage.START], "its array is shown, too"
    app.close()


def test_actions_on_more_tasks_than_a_statement_takes_parameters_are_found(app: App) -> None:
    @sa.event.listens_for(app.store.engine, "checkout")
    def _limit(connection: sqlite3.Connection, *_: Any) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 40)  # 32,766 in most builds

    tasks = [f"lab:17_{task}@{SUBMIT}" for task in range(TASKS)]
    for job in (tasks[-1], f"lab:17@{SUBMIT}", f"lab:18@{SUBMIT}"):
        cancel = PlannedAction(
            job=job,
            kind=ActionKind.CANCEL,
            status=ActionStatus.PLANNED,
            at=SUBMIT,
            reason="ann asked for it",
            detector=PEOPLE,
            finding="request",
            stage=Stage.SUBMIT,
        )
        with app.store.writing() as connection:
            plan(connection, cancel)
    assert [str(action.job) for action in actions_on(app, tasks)] == [tasks[-1], f"lab:17@{SUBMIT}"]
    assert len(planned_on(app.store, tasks)) == 1, "without the action on the array"
    app.close()


def test_only_the_jobs_of_one_owner_are_read_if_asked(app: App) -> None:
    assert show_job(app, "19", None, owner="ann") == []
    assert [each.row["user"] for each in show_job(app, "19", None, owner="bob")] == ["bob"]
    app.close()
