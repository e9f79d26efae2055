"""What is said where a model is missing: by what the user can really do, not by the name of the user."""

import os
from pathlib import Path

import pytest

from tocsin.app.judge import untrained
from tocsin.core.stages import Stage
from tocsin.store import home as homes
from tocsin.store.home import Home


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models of an ordinary user on a host where no service is installed."""
    monkeypatch.setattr(homes, "user_name", lambda uid=None: "ann")
    monkeypatch.setattr(homes, "SERVICE_HOME", tmp_path / "service")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    return Home(tmp_path / ".local" / "share" / "tocsin").models


def closed_service(monkeypatch: pytest.MonkeyPatch) -> None:
    homes.SERVICE_HOME.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path != homes.SERVICE_HOME)


def test_whoever_runs_a_service_of_any_name_is_told_to_train(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = "no model is trained for the stage `end` yet; run `tocsin train execution`"
    assert untrained("workload", Stage.END, own) == train
    closed_service(monkeypatch)
    assert untrained("workload", Stage.END, tmp_path / "srv" / "models") == train


def test_a_user_beside_a_service_whose_models_are_closed_is_told_whom_to_ask(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed_service(monkeypatch)
    told = untrained("workload", Stage.END, own)
    assert "no model for end is available to you" in told
    assert "tocsin check -u ann SCRIPT" in told


def test_a_user_who_may_read_the_models_of_the_service_is_told_to_train(own: Path) -> None:
    homes.SERVICE_HOME.mkdir()
    assert "no model is trained for the stage `end` yet" in untrained("workload", Stage.END, own)
