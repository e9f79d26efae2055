"""Simulated campaigns: the same for the same seed, and with the properties that the job types promise."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.kits.command_line import Tocsin
from tocsin.core.channels import CPU_CHANNELS
from tocsin.core.errors import NotFound, SourceError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES
from tocsin.traces.campaigns import Campaign, Split, read_campaign
from tocsin.traces.job_types import JOB_TYPES
from tocsin.traces.simulation import SimulationPlan, simulate, simulated_campaign

SMALL = SimulationPlan(nodes=2, cpus=32, seconds=600, seed=3)


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return simulated_campaign(SimulationPlan(nodes=5, cpus=32, seconds=600, seed=1))


@pytest.fixture(scope="module")
def by_label(campaign: Campaign) -> dict[str, pl.DataFrame]:
    labels = {each.job: each.label for each in campaign.card.jobs}
    rows = campaign.cpus.with_columns(
        label=pl.col("job").replace_strict(labels, default=None, return_dtype=pl.String)
    )
    return {str(name): part for (name,), part in rows.group_by("label")}


@pytest.fixture(scope="module")
def counters(campaign: Campaign) -> dict[str, pl.DataFrame]:
    labels = {each.job: each.label for each in campaign.card.jobs}
    rows = campaign.jobs.with_columns(label=pl.col("job").replace_strict(labels, return_dtype=pl.String))
    return {str(name): part for (name,), part in rows.group_by("label")}


def test_the_same_seed_gives_the_same_campaign_and_another_one_does_not() -> None:
    first, again = simulated_campaign(SMALL), simulated_campaign(SMALL)
    assert first.card == again.card
    assert first.cpus.equals(again.cpus)
    assert first.jobs.equals(again.jobs)
    other = simulated_campaign(SimulationPlan(nodes=2, cpus=32, seconds=600, seed=4))
    assert not other.cpus.equals(first.cpus)


def test_splits_share_no_job_and_no_second() -> None:
    cards = [
        simulated_campaign(SimulationPlan(nodes=2, cpus=4, seconds=300, split=split)).card for split in Split
    ]
    jobs = [{each.job for each in card.jobs} for card in cards]
    assert all(jobs[a].isdisjoint(jobs[b]) for a in range(3) for b in range(a))
    assert all(cards[n].last < cards[n + 1].first for n in range(2))


def test_a_campaign_is_read_as_it_was_written(tmp_path: Path) -> None:
    simulate(tmp_path / "out", SMALL)
    read, made = read_campaign(tmp_path / "out"), simulated_campaign(SMALL)
    assert read.card == made.card
    assert read.cpus.equals(made.cpus)
    assert read.jobs.equals(made.jobs)
    assert read.cpus.schema == CPU_SAMPLES
    assert read.jobs.schema == JOB_SAMPLES
    one = read_campaign(tmp_path / "out", nodes=["n2"])
    assert one.cpus["node"].unique().to_list() == ["n2"]
    assert one.cpus.height == made.cpus.height // 2


def test_every_cpu_has_a_sample_for_each_second_and_shares_never_exceed_one(campaign: Campaign) -> None:
    assert campaign.cpus.height == 5 * 32 * 600
    assert campaign.cpus.select(pl.struct("node", "cpu", "at").is_unique().all()).item()
    total = campaign.cpus.select(pl.sum_horizontal(CPU_CHANNELS)).to_series()
    assert total.max() <= 1.00001  # type: ignore[operator]
    assert campaign.cpus.select(pl.min_horizontal(CPU_CHANNELS).min()).item() >= 0


def test_all_types_occur_and_have_the_cpus_that_the_card_says(campaign: Campaign) -> None:
    assert {each.label for each in campaign.card.jobs} == set(JOB_TYPES) - {"idle"}
    assert campaign.cpus["job"].null_count() > 0  # idle CPUs
    for each in campaign.card.jobs:
        assert each.normal == JOB_TYPES[each.label].normal
        assert len(each.cpus) == JOB_TYPES[each.label].cpus
    job = campaign.card.jobs[7]
    rows = campaign.cpus.filter(pl.col("job") == job.job)
    assert rows["cpu"].unique().sort().to_list() == list(job.cpus)
    assert rows["at"].min() == job.start + 1
    assert rows["at"].max() == job.end


def test_iowait_dominates_bad_io_and_not_good_io(by_label: dict[str, pl.DataFrame]) -> None:
    assert by_label["bad_io"]["iowait"].mean() > 0.5  # type: ignore[operator]
    assert by_label["good_io"]["iowait"].mean() < 0.15  # type: ignore[operator]
    assert by_label["good_io"]["system"].mean() > 0.2  # type: ignore[operator]


def test_some_fits_have_moderate_iowait_but_fits_are_busy(by_label: dict[str, pl.DataFrame]) -> None:
    fits = by_label["fit"].group_by("job").agg(pl.col("user").mean(), most=pl.col("iowait").max())
    assert fits["user"].median() > 0.9  # type: ignore[operator]
    slow = fits.filter(pl.col("most") > 0.25).height / fits.height
    assert 0.05 < slow < 0.6


def test_ranks_of_an_mpi_job_are_in_step(by_label: dict[str, pl.DataFrame]) -> None:
    """When the first rank works again after an Allreduce, so do the others: no rank polls then."""
    rows = by_label["mpi_16"]
    job = rows["job"][0]
    polls = rows.filter(pl.col("job") == job).pivot("cpu", index="at", values="system").drop("at").to_numpy()
    assert (polls.max(axis=1) < 0.05).any()  # all work
    assert (polls.min(axis=1) < 0.05).mean() > 0.9  # someone always works
    assert (polls.mean(axis=1) > 0.1).mean() > 0.2  # the others wait for it


def test_anomalies_show_where_they_should(
    counters: dict[str, pl.DataFrame], by_label: dict[str, pl.DataFrame]
) -> None:
    leak = counters["memory_leak"].filter(pl.col("job") == counters["memory_leak"]["job"][0])
    assert leak["memory"][-1] > 3 * leak["memory"][30]
    fit = counters["fit"].filter(pl.col("job") == counters["fit"]["job"][0])
    assert fit["memory"][-1] < 1.1 * fit["memory"][30]
    assert counters["throttling"]["cpu_throttled"].min() > 0.1  # type: ignore[operator]
    assert counters["fit"]["cpu_throttled"].max() == 0
    assert by_label["throttling"]["user"].max() < 0.7  # type: ignore[operator]
    switches = {name: part["context_switches"].mean() for name, part in counters.items()}
    assert switches["cpu_hog"] > 3 * switches["fit"]  # type: ignore[operator]
    assert by_label["metadata_storm"]["system"].mean() > 0.4  # type: ignore[operator]
    assert by_label["cache_thrashing"]["user"].std() < 0.5 * by_label["fit"]["user"].std()  # type: ignore[operator]


def test_the_command_writes_and_shows_a_campaign(tocsin: Tocsin, tmp_path: Path) -> None:
    out = tmp_path / "made"
    options = ("--split", "validation", "--nodes", 2, "--cpus", 8, "--seconds", 300, "--json")
    done = json.loads(tocsin("campaign", "simulate", out, *options).out)
    assert done["split"] == "validation"
    assert read_campaign(out).card.split is Split.VALIDATION
    assert "mpi_16" not in done["jobs"]  # it does not fit 8 CPUs
    shown = json.loads(tocsin("campaign", "show", out, "--json").out)
    means = {(row["label"], row["channel"]): row["mean"] for row in shown["channels"]}
    assert means["idle", "user"] < 0.05
    assert sum(row["seconds"] for row in shown["channels"] if row["channel"] == "user") == 2 * 8 * 300
    assert "iowait" in tocsin("campaign", "show", out).out
    again = tocsin("campaign", "simulate", out)
    assert again.code == 1
    assert "exists already" in again.err


def test_a_killed_simulation_is_run_again_in_its_folder(tocsin: Tocsin, tmp_path: Path) -> None:
    out, whole = tmp_path / "made", {"campaign.json", "cpus.parquet", "jobs.parquet"}
    command = ("campaign", "simulate", out, "--nodes", 1, "--cpus", 2, "--seconds", 200)
    out.mkdir()
    for name in ("cpus.parquet", "jobs.parquet.part"):
        (out / name).write_bytes(b"PAR1")
    assert tocsin(*command).code == 0
    assert {path.name for path in out.iterdir()} == whole
    (out / "campaign.json").rename(out / "thesis.tex")
    assert tocsin(*command).code == 1, "other files may be somebody's work"


def test_an_unknown_type_and_a_wrong_folder_are_named(tocsin: Tocsin, tmp_path: Path) -> None:
    done = tocsin("campaign", "simulate", tmp_path / "x", "--types", "fit,fot")
    assert done.code == 1
    assert '"fot" is not a job type' in done.err
    with pytest.raises(NotFound, match=r"campaign\.json"):
        read_campaign(tmp_path)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda card: card | {"split": "exam"}, "exam"),
        (lambda card: card | {"schema": 9}, "schema 9"),
        (lambda card: {key: card[key] for key in card if key != "jobs"}, "jobs"),
        (lambda card: card | {"jobs": [card["jobs"][0] | {"job": "1; rm"}]}, "1; rm"),
    ],
)
def test_a_damaged_card_is_refused(tmp_path: Path, change, word: str) -> None:  # type: ignore[no-untyped-def]
    simulate(tmp_path, SimulationPlan(nodes=1, cpus=2, seconds=120))
    card = tmp_path / "campaign.json"
    card.write_text(json.dumps(change(json.loads(card.read_text()))))
    with pytest.raises(SourceError, match=word):
        read_campaign(tmp_path)


def test_other_columns_are_refused(tmp_path: Path) -> None:
    simulate(tmp_path, SimulationPlan(nodes=1, cpus=2, seconds=120))
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "cpus.parquet")
    with pytest.raises(SourceError, match=r"cpus\.parquet has other columns"):
        read_campaign(tmp_path)
    (tmp_path / "cpus.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"cpus\.parquet is not a readable Parquet file"):
        read_campaign(tmp_path)
