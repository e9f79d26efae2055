"""`tocsin traces train` and `score`, on simulated campaigns and on stored traces."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.kits.command_line import Tocsin
from tests.kits.pca_traces import PcaModel, train
from tests.kits.simulated_windows import WAITS, jobs
from tests.kits.trace_rounds import Nodes
from tests.kits.watching import NOON
from tocsin.core.decision import Decision
from tocsin.core.frames import SCHEMA
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, Verdict
from tocsin.store.database import open_store
from tocsin.store.decisions import record
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.windows import WindowStore
from tocsin.traces.campaigns import Split
from tocsin.traces.detector import TracesDetector
from tocsin.traces.fitted import FittedTraces
from tocsin.traces.simulation import SimulationPlan, simulate


@pytest.fixture(autouse=True)
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """PCA in place of autoencoders: these tests are about the commands."""
    monkeypatch.setattr(TracesDetector, "_train", lambda self, *given, **more: train(*given, **more))
    monkeypatch.setattr(TracesDetector, "load", lambda self, folder: FittedTraces.load(folder, PcaModel.load))


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One to learn from and one for tests."""
    root = tmp_path_factory.mktemp("campaigns")
    for split, seed in ((Split.TRAIN, 1), (Split.TEST, 2)):
        types = ("fit", "good_io", "bad_io")
        simulate(
            root / split, SimulationPlan(split=split, nodes=2, cpus=8, seconds=1200, seed=seed, types=types)
        )
    return root / "train", root / "test"


def test_a_campaign_trains_a_model_that_is_measured_on_another(
    tocsin: Tocsin, campaigns: tuple[Path, Path]
) -> None:
    said = tocsin("traces", "train", *campaigns, "--json")
    assert said.code == 0, said.err
    report = json.loads(said.out)
    assert report["promoted"]
    assert report["data"] == "campaign train", "the one for tests is not learned from"
    assert report["figures"]["recall.bad_io (campaign test)"] == 1.0
    assert report["figures"]["false_alarms_per_cpu_day (campaign test)"] == 0.0
    card = json.loads(tocsin("models", "show", "traces", "--json").out)
    assert card["stage"] == "running"
    assert all(figure["split"] and figure["data"] and figure["stage"] for figure in card["figures"])
    assert "of normal windows" in card["thresholds"][0]["rule"]


def test_scores_show_which_jobs_would_have_rung(
    tocsin: Tocsin, campaigns: tuple[Path, Path], tmp_path: Path
) -> None:
    assert tocsin("traces", "train", campaigns[0]).code == 0
    said = tocsin("traces", "score", campaigns[1], "--json", "--out", tmp_path / "windows.parquet")
    assert said.code == 0, said.err
    report = json.loads(said.out)
    for row in report["jobs"]:
        assert (row["first_alarm"] is None) == row["normal"], row["label"]
    windows = pl.read_parquet(tmp_path / "windows.parquet")
    assert windows.height == report["windows"]
    assert {"job", "node", "cpu", "at", "error", "threshold", "unusual", "in_a_row"} <= set(windows.columns)
    table = tocsin("traces", "score", campaigns[1]).out
    assert len(table.splitlines()) == len(report["jobs"]) + 2
    assert "bad_io" in table


def test_without_a_model_or_traces_the_next_step_is_named(
    tocsin: Tocsin, campaigns: tuple[Path, Path]
) -> None:
    assert "tocsin traces train" in tocsin("traces", "score", campaigns[1]).err
    said = tocsin("traces", "train", "-M", "lab")
    assert said.code == 1
    assert "tocsin traces watch" in said.err
    assert "tocsin campaign run" in tocsin("traces", "train", campaigns[1]).err


def test_stored_traces_train_a_model_without_jobs_that_raised_an_alarm(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOCSIN_TRACES__WINDOW", "20")
    home = Home(tmp_path / "home").prepare()
    nodes = Nodes()
    rows: list[dict[str, Any]] = []
    for number in range(1, 8):
        level = [WAITS] if number == 7 else []
        nodes.computes(number, 0, 900, *level, cpus=(number,))
        rows.append(
            {
                "job_id": number,
                "raw_id": number,
                "state": "COMPLETED",
                "outcome": "completed",
                "end": NOON + 900,
            }
        )
    with open_store(home.url) as store:
        upsert(store, jobs(*rows).select(SCHEMA.names()))
        bad = Finding(detector="traces", kind="high_iowait", level=Level.WARNING, text="it waits for I/O")
        alarm = Verdict(
            job=f"lab:7@{NOON}",
            stage=Stage.RUNNING,
            at=NOON + 100,
            known_until=NOON + 100,
            level=Level.WARNING,
            findings=[bad],
        )
        record(store, Decision(verdicts=[alarm]))
    kept = WindowStore(home.windows)
    for samples in nodes(NOON, NOON + 900):
        kept.append("lab", samples)
    times = ["-S", str(NOON), "-E", str(NOON + 1000)]
    report = json.loads(tocsin("traces", "train", *times, "--json").out)
    assert report["jobs"] == 6
    scores = json.loads(tocsin("traces", "score", *times, "--json").out)
    rang = [row["job"] for row in scores["jobs"] if row["first_alarm"]]
    assert rang == [f"lab:7@{NOON}"]
    assert {row["windows"] for row in scores["jobs"]} == {89}
