"""`tocsin traces embed`, `diagnose` and `regions` on stored traces of simulated jobs."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import polars as pl
import pytest

from tests.kits.command_line import Tocsin
from tests.kits.trace_lab import TraceLab, stored_campaign
from tocsin.app.app import App
from tocsin.app.jobs import find_jobs
from tocsin.app.judge import LiveJudge
from tocsin.app.traces_windows import stored_windows
from tocsin.core.stages import Stage
from tocsin.history.ledger import Ledger
from tocsin.traces.campaigns import write_campaign

DURING = ("-S", "2026-01-07T00:00:00", "-E", "2026-01-07T01:00:00")


@pytest.fixture
def lab(tmp_path: Path, tocsin: Tocsin, monkeypatch: pytest.MonkeyPatch) -> TraceLab:
    lab = stored_campaign(tmp_path / "home", monkeypatch)
    lab.train(seed=1)
    return lab


def inside(tocsin: Tocsin, job: str) -> float:
    """The share of a job's windows in the only region."""
    report = json.loads(tocsin("traces", "diagnose", job, "--json").out)
    [region] = report["regions"]
    assert region["stale"] is None
    return float(region["inside"] / report["windows"])


def test_a_confirmed_job_makes_a_region_that_the_next_one_of_its_kind_enters(
    tocsin: Tocsin, lab: TraceLab
) -> None:
    first, second = lab.jobs("bad_io")[:2]
    before = tocsin("traces", "diagnose", first)
    assert "no region has been confirmed" in before.out
    said = tocsin("traces", "diagnose", first, "--confirm", "bad_io", "--note", "seen by hand")
    assert said.code == 0, said.err
    assert f'of {first} confirmed as "bad_io"' in said.out
    assert inside(tocsin, second) > 0.5
    assert inside(tocsin, lab.jobs("fit")[0]) == 0
    [region] = json.loads(tocsin("traces", "regions", "list", "--json").out)["regions"]
    assert (region["name"], region["note"], region["model"], region["stale"]) == (
        "bad_io",
        "seen by hand",
        "1",
        None,
    )


def test_a_region_is_computed_again_for_a_new_model_and_stale_without_its_windows(
    tocsin: Tocsin, lab: TraceLab
) -> None:
    first, second = lab.jobs("bad_io")[:2]
    tocsin("traces", "diagnose", first, "--confirm", "bad_io")
    assert lab.train(seed=2) == "2"
    assert inside(tocsin, second) > 0.5
    [kept] = (lab.home / "regions").iterdir()
    kept.unlink()
    listed = tocsin("traces", "regions")
    assert "cannot be read" in listed.out
    report = json.loads(tocsin("traces", "diagnose", second, "--json").out)
    assert "cannot be read" in report["regions"][0]["stale"]
    assert "inside" not in report["regions"][0]
    assert "is stale" in tocsin("traces", "diagnose", second).err


def test_a_running_job_that_enters_a_region_rings_by_its_name(tocsin: Tocsin, lab: TraceLab) -> None:
    first, second = lab.jobs("bad_io")[:2]
    with App(folder=str(lab.home)) as app:
        ledger = Ledger(windows=stored_windows(app))
        live = LiveJudge(app, ledger, ["traces"], cluster="simulated")
        assert not live.reload()
        number = json.loads(tocsin("traces", "diagnose", first, "--confirm", "bad_io", "--json").out)[
            "number"
        ]
        assert live.reload(), "a confirmed region is used without a restart"
        running = find_jobs(app, second, None)
        ledger.now = running["end"][0] - 10
        [verdict] = live.judge.decide(running, Stage.RUNNING, known=ledger, at=ledger.now).verdicts
        [found] = [each for each in verdict.findings if each.kind == "like_bad_io"]
        assert found.text.startswith("like the jobs confirmed as bad_io on ")
        assert f"region {number}" in found.evidence
        tocsin("traces", "regions", "dismiss", number)
        assert live.reload()
        [verdict] = live.judge.decide(running, Stage.RUNNING, known=ledger, at=ledger.now).verdicts
        assert "like_bad_io" not in {each.kind for each in verdict.findings}


def test_a_dismissed_region_is_gone(tocsin: Tocsin, lab: TraceLab) -> None:
    number = json.loads(tocsin("traces", "diagnose", lab.jobs("bad_io")[0], "--confirm", "x", "--json").out)[
        "number"
    ]
    assert tocsin("traces", "regions", "dismiss", number, "--note", "wrong").code == 0
    assert "no region has been confirmed yet" in tocsin("traces", "regions").err
    assert f"no confirmed region {number}" in tocsin("traces", "regions", "dismiss", number).err


def test_a_job_that_cannot_be_told_from_its_siblings_is_not_confirmed(tocsin: Tocsin, lab: TraceLab) -> None:
    said = tocsin("traces", "diagnose", lab.jobs("fit")[0], "--confirm", "slow")
    assert said.code == 1
    assert "also match normal jobs" in said.err
    assert json.loads(tocsin("traces", "regions", "list", "--json").out) == {"regions": []}


def test_kinds_of_a_campaign_are_diagnosed_with_its_labels(
    tocsin: Tocsin, lab: TraceLab, tmp_path: Path
) -> None:
    campaign = lab.campaign
    write_campaign(tmp_path / "campaign", campaign.card, [campaign.cpus], [campaign.jobs])
    said = tocsin(
        "traces", "diagnose", tmp_path / "campaign", "--out", tmp_path / "out", "--cpu", "n1:3", "--json"
    )
    assert said.code == 0, said.err
    report = json.loads(said.out)
    assert report == json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert [row["kind"] for row in report["kinds"] if row["bad"]] == ["bad_io"]
    assert {row["bad"] for row in report["distances"]} == {"bad_io"}
    assert (report["reconstructions"][0]["node"], report["reconstructions"][0]["cpu"]) == ("n1", 3)
    for name in ("errors", "embeddings", "iowait", "reconstructions"):
        ElementTree.fromstring((tmp_path / "out" / f"{name}.svg").read_text())
    table = tocsin("traces", "diagnose", tmp_path / "campaign").out
    assert "Reconstruction error by kind of job" in table
    assert "rank correlation" in table


def test_stored_traces_have_the_kinds_of_their_jobs(tocsin: Tocsin, lab: TraceLab) -> None:
    report = json.loads(tocsin("traces", "diagnose", *DURING, "--bad", "ann/bad_io", "--json").out)
    assert {row["kind"] for row in report["kinds"]} >= {"ann/fit", "ann/good_io", "ann/bad_io"}
    assert "no kind" in tocsin("traces", "diagnose", *DURING, "--bad", "eve/x").err
    analysed = json.loads(tocsin("traces", "analyse", *DURING, "--length", 1000, "--json").out)
    assert {row["kind"] for row in analysed["kinds"]} >= {"ann/fit", "ann/good_io", "ann/bad_io"}


def test_embeddings_are_written_to_a_parquet_file(tocsin: Tocsin, lab: TraceLab, tmp_path: Path) -> None:
    said = tocsin("traces", "embed", *DURING, "--out", tmp_path / "e.parquet", "--json")
    report = json.loads(said.out)
    frame = pl.read_parquet(tmp_path / "e.parquet")
    assert frame.height == report["windows"] > 1000
    assert frame["embedding"].list.len().unique().to_list() == [report["size"]]
    assert pl.read_parquet_metadata(tmp_path / "e.parquet")["model"] == "1"


def test_impossible_requests_are_refused(tocsin: Tocsin, lab: TraceLab, tmp_path: Path) -> None:
    job = lab.jobs("bad_io")[0]
    assert "cannot name a region" in tocsin("traces", "diagnose", job, "--confirm", "bad io!").err
    assert "no job 99 in the store" in tocsin("traces", "diagnose", "99").err
    assert tocsin("traces", "diagnose", "--confirm", "bad_io").code == 2
    assert tocsin("traces", "diagnose", job, "--bad", "x").code == 2
    assert "there are no windows of" in tocsin("traces", "diagnose", job, "-E", "2026-01-01T00:00:00").err
    assert "there are no traces of" in tocsin("traces", "embed", "--out", tmp_path / "x").err
    assert "write NODE:CPU" in tocsin("traces", "diagnose", *DURING, "--cpu", "n9").err


def test_without_a_model_the_next_step_is_named(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = stored_campaign(tmp_path / "home", monkeypatch, ("fit",))
    assert "train one with: tocsin traces train" in tocsin("traces", "diagnose", lab.jobs("fit")[0]).err
