"""`campaign`: record or simulate labelled jobs, and describe a campaign."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import InputError, SourceError

if TYPE_CHECKING:
    from tocsin.traces.campaigns import Card

__all__ = ["SPLITS", "SimulateRequest", "show_campaign", "simulate_campaign", "summary"]

SPLITS = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class SimulateRequest:
    """The options of `tocsin campaign simulate`."""

    folder: Path
    split: str
    nodes: int
    cpus: int
    seconds: int
    seed: int
    types: list[str]
    """Empty: all."""


def simulate_campaign(app: App, request: SimulateRequest) -> dict[str, Any]:
    """Write a simulated campaign to a new folder; returns its summary."""
    from tocsin.traces.campaigns import Split
    from tocsin.traces.job_types import JOB_TYPES
    from tocsin.traces.simulation import SimulationPlan, simulate

    if request.folder.exists() and not _unfinished(request.folder):
        raise InputError(f"{request.folder} exists already; name a new folder")
    plan = SimulationPlan(
        split=Split(request.split),
        nodes=request.nodes,
        cpus=request.cpus,
        seconds=request.seconds,
        seed=request.seed,
        types=request.types or tuple(JOB_TYPES),
    )
    card = simulate(request.folder, plan, lambda done: app.progress("simulating nodes", done, request.nodes))
    return {"folder": str(request.folder), **summary(card)}


def _unfinished(folder: Path) -> bool:
    """Whether a folder is empty but for the remains of a killed run: samples of a campaign without its card."""
    from tocsin.traces.campaigns import CARD, CPUS, JOBS

    names = {path.name for path in folder.iterdir()} if folder.is_dir() else {CARD}
    return CARD not in names and {name.removesuffix(".part") for name in names} <= {CARD, CPUS, JOBS}


def show_campaign(folder: Path) -> dict[str, Any]:
    """What ran in a campaign, and the mean and spread of each channel by label."""
    from tocsin.core.frames import UNREADABLE
    from tocsin.sources.parquet import try_to_read
    from tocsin.traces.campaigns import CPUS, JOBS, read_card
    from tocsin.traces.channel_summary import channel_summary

    card = read_card(folder)
    try:
        for name in (CPUS, JOBS):
            try_to_read(folder / name)
        channels = channel_summary(folder, card)
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise SourceError(f"the samples in {folder} cannot be read: {reason}") from None
    return {"folder": str(folder), **summary(card), "channels": channels}


def summary(card: "Card") -> dict[str, Any]:
    """What ran in a campaign, as JSON."""
    from tocsin.core.units import format_instant

    jobs: dict[str, int] = {}
    for each in card.jobs:
        jobs[each.label] = jobs.get(each.label, 0) + 1
    return {
        "split": str(card.split),
        "origin": card.origin,
        "cluster": card.cluster,
        "nodes": len(card.nodes),
        "first": format_instant(card.first),
        "last": format_instant(card.last),
        "seconds": card.last - card.first,
        "kernel": card.kernel,
        "processor": card.processor,
        "slurm": card.slurm,
        "jobs": dict(sorted(jobs.items())),
        "notes": list(card.notes),
    }
