"""The App opens each part once and when it is needed; every loop changes models in the one way."""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import polars as pl
import pytest

from tests.kits.job_frames import SUBMIT, frame
from tests.kits.model_cards import card
from tocsin.app.app import App
from tocsin.app.judge import LiveJudge
from tocsin.app.loop import Output
from tocsin.app.screen import screen
from tocsin.app.watch import WatchRequest, watch
from tocsin.core.detector import Parts
from tocsin.core.frames import SCHEMA
from tocsin.core.stages import Stage
from tocsin.core.verdict import Screening, Workload
from tocsin.history.replay import Replay
from tocsin.store.database import Store
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script
from tocsin.workload.called_files import FollowedFiles


class Named:
    """A detector whose model is a word: every script is that operation."""

    name = "workload"
    stages = (Stage.SUBMIT,)
    learns = True
    needs = frozenset[str]()
    operation = ""

    def load(self, folder: Path) -> "Named":
        fitted = Named()
        fitted.operation = (folder / "model.txt").read_text()
        return fitted

    def fit(self, *_: object, **__: object) -> "Named":
        raise AssertionError("it is never trained here")

    def assess(self, jobs: pl.DataFrame, *_: object, **__: object) -> list[Parts]:
        look = Screening(operations={self.operation: 0.99})
        return [Parts(workload=Workload(submission=look)) for _ in range(jobs.height)]


class Screener:
    def __init__(self, version: str | None) -> None:
        self.version = version

    def screen(self, texts: Sequence[str], **_: object) -> list[Screening]:
        return [Screening(operations={}) for _ in texts]


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[App]:
    monkeypatch.setattr("tocsin.judge.plugins.find_detectors", lambda broken=None: {"workload": Named()})
    monkeypatch.setattr(
        "tocsin.app.judge.open_screener",
        lambda app: Screener(app.registry.champion("workload", Stage.SUBMIT)),
    )
    settings = {"TOCSIN_WORKLOAD__BETA_DAYS": "0", "TOCSIN_WORKLOAD__READ_FILES": "true"}
    environ = {"HOME": str(tmp_path), "TZ": "UTC", **settings}
    with App(folder=str(tmp_path / "home"), environ=environ) as opened:
        opened.home.prepare()
        yield opened


def promote(app: App, operation: str) -> None:
    def write(folder: Path) -> None:
        (folder / "model.txt").write_text(operation)

    version = app.registry.add("workload", write, card(detector="workload", stage=Stage.SUBMIT))
    app.registry.promote("workload", version)


def test_nothing_is_opened_before_it_is_used_and_the_store_only_once(tmp_path: Path) -> None:
    with App(folder=str(tmp_path / "home")) as app:
        assert not (tmp_path / "home").exists()
        store = app.store
        assert app.store is store
        assert (tmp_path / "home" / "tocsin.db").exists()


def test_a_promoted_model_reaches_the_detectors_and_the_files_that_scripts_call(app: App) -> None:
    promote(app, "cyber")
    live = LiveJudge(app, Replay(pl.DataFrame(schema=SCHEMA)))
    judge = live.judge
    assert not live.reload()
    promote(app, "cryptomining")
    assert live.reload()
    assert not live.reload()
    assert judge.detectors["workload"].models[Stage.SUBMIT].version == "2"
    fitted = judge.detectors["workload"].models[Stage.SUBMIT].fitted
    assert isinstance(fitted, FollowedFiles)
    assert fitted.screen.__self__.version == "2"  # type: ignore[attr-defined]  # a bound method


def test_screening_goes_on_with_a_model_that_was_promoted_meanwhile(app: App) -> None:
    def add(number: int) -> None:
        script = save_script(app.home.scripts, f"srun ./a.out {number}\n")
        upsert(app.store, frame({"job_id": number, "submit": SUBMIT + number, "script": script}))

    printed: list[str] = []

    def print_line(line: str) -> None:
        printed.append(line)
        if len(printed) == 1:
            promote(app, "cryptomining")
            add(2)
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    promote(app, "cyber")
    add(1)
    screen(app, Output(print_line), every=0.01)
    first, second = printed
    assert "cyber" in first
    assert "cryptomining" in second


def test_watching_goes_on_with_a_model_that_was_promoted_meanwhile(app: App) -> None:
    seen: set[str] = set()

    def print_line(line: str) -> None:
        if "cyber" in line and not seen:
            promote(app, "cryptomining")
        seen.add("cryptomining" if "cryptomining" in line else "cyber")
        if "cryptomining" in seen:
            os.kill(os.getpid(), signal.SIGTERM)

    promote(app, "cyber")
    watch(app, WatchRequest(demo=True, speed=100_000), Output(print_line))
    assert seen == {"cyber", "cryptomining"}


def test_threads_that_ask_at_once_share_one_store(tmp_path: Path) -> None:
    together = Barrier(8)

    def ask(app: App) -> Store:
        together.wait()
        return app.store

    with App(folder=str(tmp_path)) as app, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, [app] * 8))
    assert all(store is found[0] for store in found)
