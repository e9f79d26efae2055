"""`tocsin traces analyse` on a simulated campaign."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin
from tocsin.traces.campaigns import Split
from tocsin.traces.simulation import SimulationPlan, simulate


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaigns") / "train"
    plan = SimulationPlan(
        split=Split.TRAIN, nodes=2, cpus=8, seconds=1500, seed=1, types=("fit", "good_io", "bad_io", "mpi_2")
    )
    simulate(folder, plan)
    return folder


def test_the_table_shows_frequencies_and_silhouettes(tocsin: Tocsin, campaign: Path) -> None:
    said = tocsin("traces", "analyse", campaign)
    assert said.code == 0, said.err
    rows = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert " 5." in rows["good_io"] or " 4.9" in rows["good_io"]  # the kernel flushes every five seconds
    assert "no peak stands out" in rows["bad_io"]
    assert "one period of the lowest dominant frequency" in said.out
    assert "mean ± standard deviation of 30 draws" in said.out


def test_json_and_the_files_say_the_same(tocsin: Tocsin, campaign: Path, tmp_path: Path) -> None:
    said = tocsin("traces", "analyse", campaign, "--out", tmp_path / "out", "--json")
    document = json.loads(said.out)
    assert document == json.loads((tmp_path / "out" / "sampling.json").read_text())
    assert {kind["kind"] for kind in document["kinds"]} == {"fit", "good_io", "bad_io", "mpi_2", "idle"}
    picked = [s["mean"] for s in document["separation"]["silhouette"] if s["way"] == "pick"]
    assert picked[0] > picked[-1]
    for name in ("spectra", "silhouette", "waveforms"):
        ElementTree.fromstring((tmp_path / "out" / f"{name}.svg").read_text())


def test_waveforms_longer_than_the_jobs_are_said_to_be_missing(tocsin: Tocsin, campaign: Path) -> None:
    said = tocsin("traces", "analyse", campaign, "--length", 1400)
    assert said.code == 0
    assert "choose a shorter --length" in said.out


def test_a_folder_that_is_no_campaign_is_refused(tocsin: Tocsin, tmp_path: Path) -> None:
    assert "no campaign in" in tocsin("traces", "analyse", tmp_path).err


def test_a_recording_that_is_too_short_is_said_to_tell_nothing(tocsin: Tocsin, tmp_path: Path) -> None:
    plan = SimulationPlan(split=Split.TEST, nodes=1, cpus=4, seconds=130, seed=1, types=("fit",))
    simulate(tmp_path / "short", plan)
    said = tocsin("traces", "analyse", tmp_path / "short", "--out", tmp_path / "out")
    assert said.code == 0
    assert "window: unknown" in said.out
    assert "its series are too short" in said.out
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["sampling.json"]
