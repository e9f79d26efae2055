"""When the service retrains: once a day from an hour on, and again after a run that did not end."""

from zoneinfo import ZoneInfo

import pytest

from tocsin.app.app import App
from tocsin.app.doctor import doctor
from tocsin.app.nightly import LOCK
from tocsin.app.schedule import due_at, next_run
from tocsin.core.errors import SettingsError
from tocsin.core.units import parse_instant
from tocsin.store import learning_runs
from tocsin.store.learning_runs import LearningRun, RunState
from tocsin.store.locks import locked

ROME = ZoneInfo("Europe/Rome")
TODAY, TOMORROW = "2026-11-17T01:00:00Z", "2026-11-18T01:00:00Z"
"""Two o'clock in Rome."""


def at(text: str) -> int:
    return int(parse_instant(text, ROME))


def run(started: str, state: RunState) -> LearningRun:
    return LearningRun(id=1, started=at(started), who="service", state=state)


@pytest.mark.parametrize(
    ("now", "runs", "due"),
    [
        ("2026-11-17T10:00:00Z", [], TODAY),
        ("2026-11-17T00:59:59Z", [], "2026-11-16T01:00:00Z"),
        ("2026-11-17T10:00:00Z", [("2026-11-16T01:00:10Z", RunState.DONE)], TODAY),
        ("2026-11-17T10:00:00Z", [("2026-11-17T01:00:10Z", RunState.DONE)], TOMORROW),
        ("2026-11-17T01:00:20Z", [("2026-11-17T01:00:10Z", RunState.RUNNING)], TOMORROW),
        (
            "2026-11-17T01:00:20Z",
            [("2026-11-17T01:00:10Z", RunState.INTERRUPTED)],
            "2026-11-17T02:00:10Z",
        ),
        ("2026-11-17T10:00:00Z", [("2026-11-17T01:00:10Z", RunState.FAILED)] * 3, TOMORROW),
        (
            "2026-11-17T10:00:00Z",
            [("2026-11-17T02:00:10Z", RunState.DONE), ("2026-11-17T01:00:10Z", RunState.FAILED)],
            TOMORROW,
        ),
    ],
    ids=[
        "never before: now",
        "before the hour: yesterday's is still due",
        "yesterday",
        "today",
        "runs",
        "killed: an hour later",
        "three times in vain: tomorrow",
        "the second try was good",
    ],
)
def test_a_run_is_due_once_a_day(now: str, runs: list[tuple[str, RunState]], due: str) -> None:
    found = due_at([run(*each) for each in runs], now=at(now), hour=2, zone=ROME)
    assert found == at(due)


def test_the_hour_is_the_hosts_also_when_the_clocks_change() -> None:
    done = [run("2026-10-24T00:30:00Z", RunState.DONE)]  # 2:30 in summer time
    assert due_at(done, now=at("2026-10-24T12:00:00Z"), hour=2, zone=ROME) == at("2026-10-25T00:00:00Z")


def test_a_run_whose_process_died_is_seen_as_interrupted_and_one_that_lives_is_not(app: App) -> None:
    learning_runs.begin(app.store, who="ann", at=at("2026-11-17T09:00:00Z"))
    with locked(app.store, LOCK):
        next_run(app, at("2026-11-17T09:01:00Z"))
        assert [each.state for each in learning_runs.last_runs(app.store)] == [RunState.RUNNING]
    due = next_run(app, at("2026-11-17T09:01:00Z"))
    assert [each.state for each in learning_runs.last_runs(app.store)] == [RunState.INTERRUPTED]
    assert due == at("2026-11-17T10:00:00Z")


def test_a_timer_alone_and_a_wrong_hour(app: App) -> None:
    app.environ = {**app.environ, "TOCSIN_LEARN__IN_SERVICE": "false"}
    assert next_run(app, 0) is None
    other = App(folder=app.folder, environ={**app.environ, "TOCSIN_LEARN__IN_SERVICE": "true",
                                            "TOCSIN_LEARN__HOUR": "24"})  # fmt: skip
    with other, pytest.raises(SettingsError, match=r"learn\.hour is 24"):
        next_run(other, 0)


def test_the_doctor_reports_the_last_run(app: App) -> None:
    def link() -> tuple[str, str]:
        [found] = [each for each in doctor(app) if each.link == "learning"]
        return str(found.status), found.text

    assert link() == ("absent", "no model has been retrained yet")
    number = learning_runs.begin(app.store, who="ann", at=at("2026-11-17T09:00:00Z"))
    assert link() == ("fine", "retraining started 2026-11-17T09:00:00Z by ann: running")
    learning_runs.end(app.store, number, RunState.FAILED, at=at("2026-11-17T09:01:00Z"), error="no room")
    assert link() == ("note", "retraining started 2026-11-17T09:00:00Z by ann: failed (no room)")
