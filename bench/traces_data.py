"""The campaigns that models of traces are measured on: recorded in bench/recordings, and simulated 5 × 32 threads."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from tocsin.core.channels import CPU_CHANNELS
from tocsin.traces.campaigns import Campaign, Split, read_campaign
from tocsin.traces.labelled import LabelledWindows, labelled_windows
from tocsin.traces.simulation import SimulationPlan, simulated_campaign
from tocsin.traces.windows import Windows

__all__ = ["RECORDINGS", "STRIDE", "Data", "available", "data"]

RECORDINGS = Path(__file__).parent / "recordings"
SIMULATED_SECONDS = 1200
SEED = 13  # of the simulated campaigns; architecture and training were chosen on others
STRIDE = 10


@dataclass(frozen=True, slots=True)
class Data:
    """Windows of the three splits; models learn from the normal ones of the first two alone."""

    train: Windows
    validation: Windows | None
    """To stop training; without a campaign for validation, the end of `train` is held back."""
    thresholds: LabelledWindows
    """Normal windows on which thresholds are set."""
    test: LabelledWindows
    overlap: int
    """Windows that share each second."""


def available() -> list[str]:
    return [*(["recorded"] if any(RECORDINGS.rglob("campaign.json")) else []), "simulated"]


@cache
def data(name: str, channels: Sequence[str] = CPU_CHANNELS) -> Data:
    """Recordings are short: they have a window in each second. Those that end at multiples of STRIDE are what rings."""
    parts: dict[Split, list[LabelledWindows]] = {split: [] for split in Split}
    stride = STRIDE if name == "simulated" else 1
    for campaign in _campaigns(name):
        parts[campaign.card.split].append(labelled_windows(campaign, stride=stride, channels=channels))
    train, test = _joined(parts[Split.TRAIN]), _joined(parts[Split.TEST])
    overlap = train.windows.length // stride
    train = train[train.normal]
    if not parts[Split.VALIDATION]:
        return Data(train.windows, None, train, test, overlap)
    validation = _joined(parts[Split.VALIDATION])
    validation = validation[validation.normal]
    return Data(train.windows, validation.windows, validation, test, overlap)


def _campaigns(name: str) -> list[Campaign]:
    if name == "simulated":
        return [
            simulated_campaign(SimulationPlan(split=split, seconds=SIMULATED_SECONDS, seed=SEED))
            for split in Split
        ]
    return [read_campaign(card.parent) for card in sorted(RECORDINGS.rglob("campaign.json"))]


def _joined(parts: list[LabelledWindows]) -> LabelledWindows:
    windows = Windows(
        np.concatenate([part.windows.values for part in parts]),
        pl.concat([part.windows.index for part in parts]),
        parts[0].windows.channels,
    )
    return LabelledWindows(
        windows,
        np.concatenate([part.label for part in parts]),
        np.concatenate([part.normal for part in parts]),
        np.concatenate([part.whole for part in parts]),
    )
