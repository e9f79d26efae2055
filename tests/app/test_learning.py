"""The service retrains by itself: in a child process, one at a time, and a killed one costs nothing."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import unavailable
from tests.kits.service import Served, serving, wait_until
from tests.kits.trained_home import SETTINGS, make_trained_home
from tests.services import missing
from tocsin.app import first_models, learner
from tocsin.app.app import App
from tocsin.app.nightly import NightlyRequest, nightly
from tocsin.app.schedule import BY_SERVICE, next_run
from tocsin.app.tasks import Kind, Task, TaskState
from tocsin.core.decision import Decision
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.learn.journal import Journal, Step
from tocsin.serve.principal import Principal, Role
from tocsin.store.decisions import record
from tocsin.store.learning_runs import RunState, last_runs

LONG = 900.0
"""Seconds: a training on a busy machine."""
PLACE = ("failure", Stage.SUBMIT, "demo")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    return make_trained_home(tmp_path_factory.mktemp("learning") / "home")


@pytest.fixture
def home(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "home"))


def over(task: Task) -> bool:
    return task.state not in (TaskState.WAITING, TaskState.RUNNING)


def journal(app: App) -> Journal:
    return Journal(app.home.models / "nightly.json")


def trained_versions(app: App) -> list[str]:
    """Without those that came with tocsin."""
    return [version for version in app.registry.versions("failure") if version.isdigit()]


def contest(served: Served, **request: Any) -> Task:
    return served.service.tasks.start(Kind.CONTEST, request, who="ann")


def test_the_service_retrains_when_it_is_due_and_once_a_day(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner, "FIRST_LOOK", 0.0)
    monkeypatch.setattr(learner, "LOOK_EVERY", 0.1)
    notes: list[str] = []
    with serving(home, learns=True, environ=SETTINGS) as served:
        app, tasks = served.service.app, served.service.tasks
        app.notify = notes.append
        wait_until(lambda: (runs := last_runs(app.store)) and runs[0].state is RunState.DONE, LONG)
        [task] = tasks.list(Kind.CONTEST)
        wait_until(lambda: over(task), LONG)
        [run] = last_runs(app.store)
        assert (task.state, run.who) == (TaskState.DONE, BY_SERVICE)
        [outcome] = run.outcomes
        assert outcome["state"] in ("promoted", "kept")
        assert (outcome["champion"], outcome["challenger"]) == ("1", "2")
        assert task.result == {"outcomes": [outcome]}
        wait_until(lambda: notes, LONG)
        [note] = notes
        assert note.startswith("failure at submit on demo: ")
        assert note.endswith(outcome["why"])
        due = next_run(app, run.started)
        assert due is not None
        assert due > run.started, "not again today"
        again = contest(served)
        wait_until(lambda: over(again), LONG)
        assert again.result is not None
        assert again.result["outcomes"][0]["state"] == "done"
        assert trained_versions(app) == ["1", "2"]


def test_two_triggers_at_once_run_one_contest(home: Path) -> None:
    words = ["--home", str(home), "nightly"]
    timer = subprocess.Popen(
        [sys.executable, "-c", f"from tocsin.cli.main import run; run({words!r})"],
        env={**os.environ, **SETTINGS, "HOME": str(home.parent)},
        stderr=subprocess.PIPE,
        text=True,
    )
    with serving(home, environ=SETTINGS) as served:
        task = contest(served)
        said = timer.communicate(timeout=LONG)[1]
        wait_until(lambda: over(task), LONG)
        app = served.service.app
        assert len(journal(app).of(*PLACE)) == 1
        assert trained_versions(app) == ["1", "2"]
        stopped = "another `tocsin nightly` is running"
        assert timer.returncode == 0, said
        if stopped in said:
            assert task.state is TaskState.DONE
        else:  # one was over before the other began, or the service's stopped
            assert task.result or stopped in str(task.error)


@pytest.mark.parametrize("step", [Step.BEGUN, Step.RETRAINED])
def test_a_child_that_is_killed_is_continued_and_nothing_is_lost_or_doubled(home: Path, step: Step) -> None:
    with serving(home, environ=SETTINGS) as served:
        app, task = served.service.app, contest(served)

        def reached() -> bool:
            assert not over(task), "it was killed too late"
            entry = journal(app).last(*PLACE)
            return entry is not None and entry.step is step

        wait_until(reached, LONG)
        assert task.child is not None
        os.kill(task.child.process.pid or 0, signal.SIGKILL)
        wait_until(lambda: over(task), LONG)
        assert (task.state, task.error) == (TaskState.FAILED, "its process died (out of memory?)")
        assert app.registry.champion("failure", Stage.SUBMIT, "demo") == "1"
    with App(folder=str(home), environ={"HOME": str(home.parent), **SETTINGS}) as app:
        [outcome] = nightly(app, NightlyRequest())
        assert outcome.state in ("promoted", "kept")
        [entry] = journal(app).of(*PLACE)
        assert (entry.step, entry.challenger) == (Step.DONE, "2")
        assert trained_versions(app) == ["1", "2"]
        assert len(app.registry.card("failure", "2").promotions) == (outcome.state == "promoted")
        assert [run.state for run in last_runs(app.store)] == [RunState.DONE, RunState.INTERRUPTED]


def test_a_promotion_is_in_use_from_the_next_question_on(home: Path) -> None:
    with serving(home, environ=SETTINGS) as served:
        admin = served.client(Principal("root", Role.ADMIN, "test"))

        def version() -> str:
            answer = admin.post(
                "/api/v1/check", json={"script": "#!/bin/bash\nsrun ./a.out\n", "user": "ada"}
            )
            return str(answer.json()["models"]["failure"])

        assert version() == "1"
        wanted = {"rule": "precision_at_least=0.5", "stage": "submit", "cluster": "demo"}
        assert admin.put("/api/v1/thresholds/failure", json=wanted).json()["version"] == "2"
        assert version() == "2"
        place = {"stage": "submit", "cluster": "demo"}
        assert admin.post("/api/v1/models/failure/rollback", json=place).json()["champion"] == "1"
        assert version() == "1"


def test_a_watched_cluster_gets_its_first_model_when_enough_is_known(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_models, "TRIALS", 1)
    monkeypatch.setattr(first_models, "STAGES", (Stage.START,))
    with App(folder=str(home), environ={"HOME": str(home.parent), **SETTINGS}) as app:
        assert list(first_models.first_models(app, only=None, dry_run=False)) == [], "nobody watches it"
        said = Verdict(job="demo:1@5", stage=Stage.SUBMIT, at=5, known_until=5, level=Level.OK)
        record(app.store, Decision(verdicts=[said]))
        assert list(first_models.first_models(app, only="lab", dry_run=False)) == []
        [planned] = first_models.first_models(app, only=None, dry_run=True)
        assert (planned.state, trained_versions(app)) == ("planned", ["1"])
        [found] = first_models.first_models(app, only="demo", dry_run=False)
        assert (found.state, found.challenger) == ("promoted", "2")
        assert app.registry.champion("failure", Stage.START, "demo") == "2"
        assert list(first_models.first_models(app, only=None, dry_run=False)) == []
        app.registry.rollback("failure", Stage.START, cluster="demo")
        assert list(first_models.first_models(app, only=None, dry_run=False)) == [], "a person rolled it back"
