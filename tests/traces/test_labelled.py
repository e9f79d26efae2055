"""Labelled windows of a campaign."""

from dataclasses import replace

import numpy as np
import polars as pl

from tocsin.core.channels import JOB_CHANNELS
from tocsin.traces.campaigns import Campaign
from tocsin.traces.labelled import labelled_windows
from tocsin.traces.simulation import SimulationPlan, simulated_campaign

PLAN = SimulationPlan(nodes=2, cpus=32, seconds=400, seed=2)


def test_each_window_has_the_label_of_the_job_that_had_its_cpu() -> None:
    campaign = simulated_campaign(PLAN)
    found = labelled_windows(campaign)
    labels = dict(campaign.labels.select("job", "label").iter_rows())
    index = found.windows.index
    assert len(found) == len(index) > 500
    for job, label in zip(index["job"], found.label, strict=True):
        assert label == ("idle" if job is None else labels[job])
    assert set(found.label) >= {"fit", "good_io", "bad_io", "idle"}
    assert not found.normal[found.label == "bad_io"].any()
    assert found.normal[found.label == "idle"].all()
    waits = found.windows.values[..., 2].mean(axis=1)
    assert waits[found.label == "bad_io"].min() > waits[found.label == "good_io"].max()


def test_windows_of_job_counters_are_labelled_too() -> None:
    found = labelled_windows(simulated_campaign(PLAN), channels=JOB_CHANNELS)
    assert found.windows.values.shape[1:] == (100, len(JOB_CHANNELS))
    assert found.windows.index["cpu"].null_count() == len(found)
    assert "idle" not in found.label
    assert np.isin("memory_leak", found.label)


def test_a_job_that_is_not_in_the_card_is_left_out_and_not_called_idle() -> None:
    campaign = simulated_campaign(PLAN)
    stranger = campaign.card.jobs[0]
    card = replace(campaign.card, jobs=campaign.card.jobs[1:])
    before = labelled_windows(campaign)
    after = labelled_windows(Campaign(card, campaign.cpus, campaign.jobs))
    gone = before.windows.index.filter(pl.col("job") == campaign.keys[stranger.job]).height
    assert gone > 0
    assert len(after) == len(before) - gone
    assert (after.label == "idle").sum() == (before.label == "idle").sum()


def test_a_window_is_whole_if_every_second_is_of_its_job() -> None:
    campaign = simulated_campaign(PLAN)
    found = labelled_windows(campaign, stride=1)
    owner = {
        (node, cpu, at): job for node, cpu, at, job in campaign.cpus.select("node", "cpu", "at", "job").rows()
    }
    index = found.windows.index.select("node", "cpu", "at")
    rows = np.random.default_rng(0).permutation(len(found))[:500]
    for row in [*rows, *np.flatnonzero(~found.whole)[:50]]:
        node, cpu, at = index.row(int(row))
        assert found.whole[row] == (len({owner[node, cpu, at - back] for back in range(100)}) == 1)


def test_a_selection_keeps_windows_and_labels_together() -> None:
    found = labelled_windows(simulated_campaign(PLAN))
    some = found[found.label == "fit"]
    assert set(some.label) == {"fit"}
    assert len(some.windows) == len(some.normal) == len(some)
