"""An array of many tasks: asking about it takes no statement for each task, which took the service half a minute."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.kits.job_frames import frame
from tocsin.app import actions
from tocsin.app.actions import actions_on
from tocsin.app.app import App
from tocsin.app.jobs import show_job
from tocsin.app.own_jobs import resubmissions
from tocsin.store.jobs import upsert

TASKS = 50


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


def test_actions_on_more_tasks_than_a_statement_takes_parameters_are_found(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "_MOST_PARAMETERS", 20)
    assert actions_on(app, [str(each.key) for each in show_job(app, "17", None)]) == []
    app.close()


def test_only_the_jobs_of_one_owner_are_read_if_asked(app: App) -> None:
    assert show_job(app, "19", None, owner="ann") == []
    assert [each.row["user"] for each in show_job(app, "19", None, owner="bob")] == ["bob"]
    app.close()
