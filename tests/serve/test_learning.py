"""Learning by API: runs, live figures, challengers and drift for operators; changes for admins."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.kits.model_cards import card, write
from tests.kits.service import Served, serving, wait_until
from tocsin.app.learning import LiveMeasurement
from tocsin.core.stages import Stage
from tocsin.serve.principal import Principal, Role
from tocsin.serve.routes.learning import LIVE
from tocsin.store import learning_runs
from tocsin.store.learning_runs import RunState

DRIFT = {"name": "share failed", "then": 0.2, "now": 0.3, "stability": None, "strength": None}
PLACE = {"detector": "siren", "stage": "submit", "cluster": None}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A service on an empty store, with two models of a detector."""
    with serving(tmp_path / "home") as found:
        registry = found.service.app.registry
        for _ in range(2):
            registry.add("siren", write, card("siren"))
        registry.promote("siren", "1")
        yield found


@pytest.fixture
def api(served: Served) -> TestClient:
    return served.client()


def test_the_state_of_learning_before_anything_was_learned(api: TestClient) -> None:
    found = api.get("/api/v1/learning").json()
    assert found["retraining"]["runs"] == []
    assert (found["retraining"]["next"], found["retraining"]["running"]) == (None, False), "by a timer only"
    assert (found["measured"], found["live"], found["drift"]) == (None, [], [])
    assert found["missing"] == {"live": "the live figures are being measured; try again in a minute"}


def test_runs_and_drift_are_those_of_the_store(served: Served, api: TestClient) -> None:
    store, now = served.service.app.store, int(time.time())
    outcome = {
        **PLACE,
        "champion": "1",
        "challenger": None,
        "state": "skipped",
        "why": "not due",
        "result": None,
    }
    for at, drift in ((now - 200, [DRIFT]), (now - 100, [])):
        number = learning_runs.begin(store, who="ann", at=at)
        outcomes = [{**outcome, "drift": drift}]
        learning_runs.end(store, number, RunState.DONE, at=at + 9, outcomes=outcomes)
    learning_runs.begin(store, who="service", at=now)
    found = api.get("/api/v1/learning").json()
    assert [(run["who"], run["state"]) for run in found["retraining"]["runs"]] == [
        ("service", "running"),
        ("ann", "done"),
        ("ann", "done"),
    ]
    assert found["retraining"]["running"]
    [drift] = found["drift"]
    assert (drift["champion"], drift["drift"]) == ("1", [DRIFT]), "of the last run that measured it"
    lines = [line.split() for line in api.get("/metrics").text.splitlines() if "_last_run_" in line]
    values = {line[0]: float(line[1]) for line in lines if line[0] != "#"}
    assert values == {
        "tocsin_learning_last_run_timestamp_seconds": now,
        "tocsin_learning_last_run_done": 0,
    }


def test_live_figures_are_measured_in_a_child_process(served: Served, api: TestClient) -> None:
    service = served.service
    service.learner.measuring.poll(0.0)

    def measured() -> bool:
        service.learner.measuring.poll(0.0)
        return service.learner.measuring.last is not None

    wait_until(measured)
    found = api.get("/api/v1/learning").json()
    assert (found["live"], found["missing"]) == ([], {})
    assert found["measured"]


def test_live_figures_are_shown_with_models_and_as_metrics(served: Served, api: TestClient) -> None:
    rows = [
        {**LIVE, "detector": "siren", "version": "1", "role": "champion"},
        {**LIVE, "detector": "siren", "version": "2", "role": "challenger", "precision": None},
        {**LIVE, "detector": "siren", "version": None, "role": None},
    ]
    served.service.learner.measuring.last = LiveMeasurement(at=5, figures=rows)
    models = api.get("/api/v1/models", params={"detector": "siren"}).json()["models"]
    assert [each["live"] for each in models] == [[rows[0]], [rows[1]]]
    assert api.get("/api/v1/models/siren/champion").json()["live"] == [rows[0]]
    text = api.get("/metrics").text

    def line(name: str, role: str) -> str:
        return f'tocsin_model_live_{name}{{cluster="lab",detector="siren",role="{role}",stage="submit"}} '

    assert line("precision_ratio", "champion") + "0.84" in text
    assert line("precision_low_ratio", "champion") + "0.79" in text
    assert line("recall_high_ratio", "challenger") + "0.44" in text
    assert line("jobs", "challenger") + "18204.0" in text
    assert line("precision_ratio", "challenger") not in text, "too few: no value"
    assert 'role="None"' not in text


def test_a_challenger_is_named_and_ended(served: Served, api: TestClient) -> None:
    registry = served.service.app.registry
    named = api.post("/api/v1/models/siren/2/challenge", json={"cluster": "lab"})
    assert named.json() == {**PLACE, "cluster": "lab", "challenger": "2", "before": None}
    assert registry.challenger("siren", Stage.SUBMIT, "lab") == "2"
    ended = api.delete("/api/v1/models/siren/challenger", params={"cluster": "lab", "stage": "submit"})
    assert ended.json() == {**PLACE, "cluster": "lab", "challenger": None, "before": "2"}
    assert registry.challenger("siren", Stage.SUBMIT, "lab") is None
    itself = api.post("/api/v1/models/siren/1/challenge", json={})
    assert (itself.status_code, "cannot run beside itself" in itself.json()["detail"]) == (409, True)
    assert api.delete("/api/v1/models/siren/challenger").status_code == 404


def test_users_neither_read_nor_change_it(served: Served) -> None:
    user = served.client(Principal("ann", Role.USER, "test"))
    assert user.get("/api/v1/learning").status_code == 403
    assert user.post("/api/v1/contests", json={}).status_code == 403
    assert user.post("/api/v1/models/siren/2/challenge", json={}).status_code == 403


def test_a_contest_is_started_by_hand_and_its_run_is_listed(api: TestClient) -> None:
    begun = api.post("/api/v1/contests", json={"detectors": ["siren"]})
    assert begun.status_code == 202
    where = begun.headers["Location"]
    wait_until(lambda: api.get(where).json()["state"] not in ("waiting", "running"))
    [outcome] = api.get(where).json()["result"]["outcomes"]
    assert (outcome["state"], outcome["why"]) == (
        "skipped",
        "the detector has no contest, so it is never retrained automatically",
    )
    [run] = api.get("/api/v1/learning").json()["retraining"]["runs"]
    assert (run["who"], run["state"], run["outcomes"]) == ("olga", "done", [outcome])
