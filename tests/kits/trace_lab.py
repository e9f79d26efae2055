"""A home folder with the jobs and samples of a simulated campaign, as if they had been recorded, and trace models."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from tests.kits.pca_traces import pca_detector
from tocsin.app.app import App
from tocsin.app.traces_samples import campaign_samples
from tocsin.app.traces_windows import window_store
from tocsin.core.fields import Job
from tocsin.core.frames import Samples, from_jobs
from tocsin.judge import plugins
from tocsin.learn.train_traces import train_traces
from tocsin.store.jobs import upsert
from tocsin.traces.campaigns import Campaign, Split
from tocsin.traces.simulation import SimulationPlan, simulated_campaign

NORMAL = ("fit", "good_io", "idle")


@dataclass(frozen=True)
class TraceLab:
    """The campaign that is stored in a home folder."""

    home: Path
    campaign: Campaign
    monkeypatch: pytest.MonkeyPatch

    def jobs(self, label: str) -> list[str]:
        """The keys of its jobs, the first one first."""
        keys = self.campaign.keys
        return [keys[each.job] for each in self.campaign.card.jobs if each.label == label]

    def train(self, seed: int) -> str:
        """Train a PCA model on normal jobs and use it; its version."""
        plan = SimulationPlan(split=Split.TRAIN, nodes=2, cpus=16, seconds=900, seed=seed, types=NORMAL)
        campaign = simulated_campaign(plan)
        windows, _ = campaign_samples(campaign).windows(100)
        frame = windows.to_frame().filter(pl.col("job").is_not_null())
        kinds = campaign.labels.select("job", user=pl.lit("ann"), name="label")
        detector = pca_detector()
        self.monkeypatch.setattr(plugins, "find_detectors", lambda *_: {"traces": detector})
        with App(folder=str(self.home)) as app:
            return train_traces(
                frame, kinds, app.registry, detector, data="simulated", stride=10, seed=seed
            ).version


def stored_campaign(
    home: Path, monkeypatch: pytest.MonkeyPatch, types: tuple[str, ...] = (*NORMAL, "bad_io")
) -> TraceLab:
    """Simulated jobs of ann, named by their labels, in the store; their samples among the kept traces."""
    plan = SimulationPlan(split=Split.TEST, nodes=2, cpus=16, seconds=1200, seed=5, types=types)
    campaign = simulated_campaign(plan)
    card = campaign.card
    jobs = [
        Job(
            cluster=card.cluster,
            job_id=int(each.job),
            task=None,
            submit=each.submit,
            start=each.start,
            end=each.end,
            known_at=each.end,
            state="COMPLETED",
            user="ann",
            name=each.label,
            node_list=each.node,
        )
        for each in card.jobs
    ]
    with App(folder=str(home)) as app:
        upsert(app.store, from_jobs(jobs))
        window_store(app).append(card.cluster, Samples(campaign.cpus, campaign.jobs))
    return TraceLab(home, campaign, monkeypatch)
