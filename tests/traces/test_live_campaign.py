"""`tocsin campaign run` on a real Slurm: labelled jobs are submitted, recorded and, when interrupted, cancelled."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import unavailable
from tests.kits.command_line import Tocsin
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tocsin.traces.campaigns import read_campaign

ON_ONE_NODE = ("-M", "lab", "-w", "n1")


@pytest.fixture
def live(tocsin: Tocsin, slurm: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Tocsin:
    if not slurm.cgroups:
        unavailable("control groups of version 1 are not ours to write here")
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    return tocsin


def test_jobs_are_recorded_with_their_labels_and_added_to_what_is_there(live: Tocsin, tmp_path: Path) -> None:
    out = tmp_path / "made"
    run = ("campaign", "run", out, "--split", "test", "--seconds", 8, *ON_ONE_NODE)
    done = live(*run, "--types", "fit,bad_io", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["jobs"] == {"bad_io": 1, "fit": 1}
    campaign = read_campaign(out)
    assert campaign.card.origin == "recorded"
    assert (campaign.card.cluster, list(campaign.card.nodes)) == ("lab", ["n1"])
    assert campaign.card.kernel == os.uname().release
    of = {each.label: each for each in campaign.card.jobs}
    assert of["fit"].normal
    assert not of["bad_io"].normal
    used = campaign.jobs.group_by("job").agg(pl.col("cpu_user").mean())
    busy = dict(used.select("job", "cpu_user").iter_rows())
    assert busy[of["fit"].job] > 2 * busy[of["bad_io"].job], "one computes, the other waits"
    for job in campaign.card.jobs:
        rows = campaign.cpus.filter(pl.col("job") == job.job)
        assert set(rows["cpu"]) == set(job.cpus)
        assert job.end - job.start >= 8
    again = live(*run, "--types", "idle")
    assert again.code == 0, again.err
    assert sorted(each.label for each in read_campaign(out).card.jobs) == ["bad_io", "fit", "idle"]
    other = live("campaign", "run", out, "--split", "train", "--types", "idle", *ON_ONE_NODE)
    assert other.code == 1
    assert "belongs wholly to one split" in other.err


def test_an_interrupted_campaign_cancels_its_jobs_and_no_others(
    live: Tocsin, slurm: SlurmLab, tmp_path: Path
) -> None:
    mine = slurm.sbatch("sleep 60", "--mem=20", "-w", "n2")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = ["campaign", "run", str(tmp_path / "made"), "--split", "train", "--seconds", "60"]
    start = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
    ours = subprocess.Popen(
        [*start, *command, "--types", "idle,metadata_storm", "--scratch", str(scratch), *ON_ONE_NODE],
        env=os.environ,
    )

    def running() -> int:
        names = slurm.run("squeue", "-h", "-t", "running", "-o", "%j").stdout.split()
        return sum(name.startswith("campaign-") for name in names)

    try:
        await_true("the campaign's jobs do not run", lambda: running() == 2, 60)
        await_true("no file is written", lambda: any(scratch.iterdir()), 30)
        ours.send_signal(signal.SIGINT)
        assert ours.wait(60) == 1
        await_true("the campaign's jobs still run", lambda: running() == 0, 30)
        assert slurm.state(mine) == "RUNNING"
    finally:
        ours.kill()
        slurm.run("scancel", str(mine))
    assert not (tmp_path / "made").exists()
    await_true("files are left", lambda: not any(scratch.iterdir()), 30)


def test_a_type_that_fits_no_node_is_refused_before_anything_is_submitted(
    live: Tocsin, tmp_path: Path
) -> None:
    done = live("campaign", "run", tmp_path / "x", "--split", "train", "--types", "mpi_64", *ON_ONE_NODE)
    assert done.code == 1
    assert "mpi_64 needs a CPU for each rank on one node, but the largest node has 2 CPUs" in done.err
