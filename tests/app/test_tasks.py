"""Heavy work of a service: its results outlive a restart."""

import json
from pathlib import Path

import pytest

from tests.kits.service import wait_until
from tocsin.app.app import App
from tocsin.app.tasks import Kind, Tasks, TaskState
from tocsin.core.errors import NotFound


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path), "TZ": "UTC"})


def test_what_a_task_found_is_known_after_a_restart(app: App) -> None:
    first = Tasks(app, 1)
    task = first.start(Kind.BACKTEST, {"cluster": "lab"}, who="ann")
    wait_until(lambda: task.state is TaskState.FAILED)  # there are no jobs
    first.close()
    again = Tasks(app, 1)
    assert again.get(Kind.BACKTEST, task.id).to_json() == task.to_json()
    assert [each.id for each in again.list(Kind.BACKTEST)] == [task.id]
    again.close()


def test_a_task_that_a_killed_service_left_behind_has_failed_and_says_why(app: App) -> None:
    folder = app.home.cache / "tasks"
    folder.mkdir(parents=True)
    left = {"id": "5f", "kind": "training", "request": {}, "who": "ann", "created": 7, "state": "running"}
    (folder / "5f.json").write_text(json.dumps(left))
    (folder / "6f.json").write_text(
        '{"id": "6f", "kind": "of another version", "state": "done", "created": 8}'
    )
    (folder / "7f.json").write_text("cut of")
    tasks = Tasks(app, 1)
    found = tasks.get(Kind.TRAINING, "5f")
    assert found.state is TaskState.FAILED
    assert "restarted" in str(found.error)
    with pytest.raises(NotFound):
        tasks.get(Kind.TRAINING, "7f")
    tasks.close()
