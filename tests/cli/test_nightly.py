"""`tocsin nightly` on the demo cluster, as docs/nightly.md describes it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY, unavailable
from tests.kits.command_line import Tocsin
from tests.services import missing
from tocsin.failure.detector import DETECTOR
from tocsin.models.registry import Registry
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.locks import locked


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained on the demo's first days, and the days after them."""
    if sentence := missing("lightgbm"):
        unavailable(sentence)
    home = tmp_path_factory.mktemp("nightly") / "home"
    for line in ("demo --days 4", "train failure -M demo --trials 1", "demo --days 9"):
        words = ["--home", str(home), *shlex.split(line)]
        program = f"from tocsin.cli.main import run; run({words!r})"
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    return home


def test_a_night_on_the_demo(tocsin: Tocsin, trained: Path) -> None:
    def run(*words: str) -> dict[str, Any]:
        said = tocsin("--home", trained, "nightly", *words, "--json")
        assert said.code == 0, said.err
        [found] = json.loads(said.out)
        return dict(found)

    registry = Registry(trained / "models")
    assert (run("--dry-run")["state"], registry.versions("failure")) == ("planned", ["1"])
    found = run()
    result = found["result"]
    assert found["state"] == ("promoted" if result["promotes"] else "kept")
    assert (found["champion"], found["challenger"]) == ("1", "2")
    assert (result["figure"], result["rows"] > 100) == ("average_precision", True)
    assert result["low"] <= result["gain"] <= result["high"]
    before, after = (registry.verify("failure", version) for version in ("1", "2"))
    assert before.window is not None
    assert after.window is not None
    assert before.window.last < after.window.last, "it has learned from newer jobs"
    assert (after.parent, after.target, after.engine) == ("1", before.target, before.engine)
    model = DETECTOR.load(registry.open_verified("failure", "2")[0])
    assert model.recent is not None
    assert model.recent.submit.min() > before.window.last, "version 1 had not learned from them"
    assert model.recent.known_until > after.window.last, "they reach into the days held back"
    assert run()["state"] == "done"
    assert registry.versions("failure") == ["1", "2"]


def test_every_command_of_the_page_works(tocsin: Tocsin, trained: Path) -> None:
    """In the order of the page, after the night above."""
    page = (REPOSITORY / "docs" / "nightly.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("tocsin ")]
    assert len(lines) > 5
    for line in lines:
        said = tocsin("--home", trained, *shlex.split(line)[1:])
        assert said.code == 0, f"{line}: {said.err}"
    said = tocsin("--home", trained, "nightly")
    assert said.out.startswith("failure at submit on demo: already done today (")


def test_a_second_run_at_the_same_time_stops(tocsin: Tocsin, tmp_path: Path) -> None:
    with open_store(Home(tmp_path / "home").prepare().url) as store, locked(store, "nightly"):
        said = tocsin("nightly")
    assert (said.code, said.err) == (
        0,
        "tocsin: another `tocsin nightly` is running with this store; this one stops\n",
    )


def test_without_a_trained_model_there_is_nothing_to_do(tocsin: Tocsin) -> None:
    said = tocsin("nightly")
    assert (said.code, said.out) == (0, "")
    assert "no trained model is in use" in said.err
    assert "no trained model that learned from lab alone is in use" in tocsin("nightly", "-M", "lab").err
    assert json.loads(tocsin("nightly", "--json").out) == []
    assert 'no detector "x" with models' in tocsin("nightly", "x").err
