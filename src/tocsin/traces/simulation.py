"""Simulated campaigns: labelled jobs on nodes of a cluster, reproducible by seed. They are no proof of accuracy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.errors import InputError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES
from tocsin.traces.behaviours import BEHAVIOURS, Behaviour
from tocsin.traces.campaigns import Campaign, Card, LabelledJob, Split, write_campaign
from tocsin.traces.job_types import IDLE, JOB_TYPES, JobType, job_types, ranks

__all__ = ["SimulationPlan", "simulate", "simulated_campaign"]

_FIRST = 1_767_571_200  # 2026-01-05T00:00:00Z; each split has a day of its own
_DAY = 86400
_PAUSE = 3  # seconds between two jobs on a CPU
_SHORTEST = 120  # seconds of a job: long enough for a window
CLUSTER = "simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationPlan:
    """The size of a simulated campaign; the paper's cluster is 5 nodes of 32 threads."""

    split: Split = Split.TRAIN
    nodes: int = 5
    cpus: int = 32
    seconds: int = 1200
    seed: int = 0
    types: Sequence[str] = tuple(JOB_TYPES)


def simulate(folder: Path, plan: SimulationPlan, progress: Callable[[int], None] | None = None) -> Card:
    """Write the campaign to a folder, node by node; `progress` gets the number of nodes done."""
    card = _card(plan)
    by_node: dict[str, list[LabelledJob]] = {node: [] for node in card.nodes}
    for job in card.jobs:
        by_node[job.node].append(job)

    def cpus() -> Iterator[pl.DataFrame]:
        for number, (node, jobs) in enumerate(by_node.items()):
            yield _node_cpus(plan, card, node, number, jobs)
            if progress:
                progress(number + 1)

    counters = (_node_jobs(plan, number, jobs) for number, jobs in enumerate(by_node.values()) if jobs)
    write_campaign(folder, card, cpus(), counters)
    return card


def simulated_campaign(plan: SimulationPlan) -> Campaign:
    """The same campaign in memory."""
    card = _card(plan)
    cpus, counters = [], []
    for number, node in enumerate(card.nodes):
        jobs = [job for job in card.jobs if job.node == node]
        cpus.append(_node_cpus(plan, card, node, number, jobs))
        if jobs:
            counters.append(_node_jobs(plan, number, jobs))
    return Campaign(card, pl.concat(cpus), pl.concat([JOB_SAMPLES.to_frame(), *counters]))


def _card(plan: SimulationPlan) -> Card:
    first = _FIRST + _DAY * list(Split).index(plan.split)
    nodes = [f"n{number:0{len(str(plan.nodes))}d}" for number in range(1, plan.nodes + 1)]
    return Card(
        split=plan.split,
        origin="simulated",
        cluster=CLUSTER,
        nodes=nodes,
        first=first,
        last=first + plan.seconds,
        jobs=list(_schedule(plan, nodes, first)),
        seed=plan.seed,
        notes=["Simulated: the behaviour of the jobs is made up."],
    )


def _schedule(plan: SimulationPlan, nodes: Sequence[str], first: int) -> Iterator[LabelledJob]:
    """Jobs drawn from a shuffled deck of all types, so that each type occurs as often as its share says.

    A card that does not fit on the CPUs left on the node is kept for the next node. CPUs that get the type `idle` have
    no job.
    """
    chosen = [each for each in job_types(plan.types) if each.cpus <= plan.cpus]
    if not chosen or plan.seconds < _SHORTEST:
        raise InputError(
            f"no job type fits {plan.cpus} CPUs and {plan.seconds} s; a campaign needs at least {_SHORTEST} s and a type that fits"
        )
    random = np.random.default_rng([plan.seed, list(Split).index(plan.split)])
    deck: list[JobType] = []
    job = 1_000_000 * (1 + list(Split).index(plan.split))
    for begin, end in _rounds(random, plan.seconds):
        for node in nodes:
            cpu = 0
            while cpu < plan.cpus:
                if len(deck) < 2 * len(chosen):
                    cards = [each for each in chosen for _ in range(each.share)]
                    deck += [cards[place] for place in random.permutation(len(cards))]
                place = next((n for n, each in enumerate(deck) if each.cpus <= plan.cpus - cpu), None)
                if place is None:
                    break  # the rest of the node stays idle
                each = deck.pop(place)
                if each.label != IDLE:
                    job += 1
                    late = int(random.integers(0, 10))
                    yield LabelledJob(
                        job=str(job),
                        label=each.label,
                        normal=each.normal,
                        node=node,
                        cpus=list(range(cpu, cpu + each.cpus)),
                        submit=first,
                        start=first + begin + late,
                        end=first + end,
                    )
                cpu += each.cpus


def _rounds(random: np.random.Generator, seconds: int) -> Iterator[tuple[int, int]]:
    begin = 0
    while seconds - begin >= _SHORTEST:
        end = begin + int(random.integers(240, 480))
        if seconds - end < _SHORTEST + _PAUSE:
            end = seconds
        yield begin, end
        begin = end + _PAUSE


def _behave(plan: SimulationPlan, number: int, job: LabelledJob) -> Behaviour:
    random = np.random.default_rng([plan.seed, list(Split).index(plan.split), number, int(job.job)])
    return BEHAVIOURS["mpi" if ranks(job.label) else job.label](random, job.end - job.start, len(job.cpus))


def _node_cpus(
    plan: SimulationPlan, card: Card, node: str, number: int, jobs: Sequence[LabelledJob]
) -> pl.DataFrame:
    random = np.random.default_rng([plan.seed, list(Split).index(plan.split), number])
    shares = BEHAVIOURS[IDLE](random, plan.seconds, plan.cpus).cpus.astype(np.float32)
    owner = np.zeros((plan.seconds, plan.cpus), dtype=np.int64)
    for job in jobs:
        place = np.ix_(range(job.start - card.first, job.end - card.first), job.cpus)
        shares[place] = _behave(plan, number, job).cpus
        owner[place] = int(job.job)
    at = np.arange(card.first + 1, card.first + plan.seconds + 1)
    return pl.DataFrame(
        {
            "node": pl.repeat(node, owner.size, eager=True),
            "cpu": np.repeat(np.arange(plan.cpus, dtype=np.int32), plan.seconds),
            "at": np.tile(at, plan.cpus),
            "job": pl.Series(owner.T.ravel()).replace(0, None).cast(pl.String),
            **{name: shares[..., place].T.ravel() for place, name in enumerate(CPU_CHANNELS)},
        },
        schema=CPU_SAMPLES,
    )


def _node_jobs(plan: SimulationPlan, number: int, jobs: Sequence[LabelledJob]) -> pl.DataFrame:
    seconds = [job.end - job.start for job in jobs]
    counters = [_behave(plan, number, job).counters for job in jobs]
    columns = {name: [each[name] for each in counters if name in each] for name in JOB_CHANNELS}
    empty = pl.repeat(None, sum(seconds), dtype=pl.Float64, eager=True)
    return pl.DataFrame(
        {
            "node": pl.repeat(jobs[0].node, sum(seconds), eager=True),
            "job": pl.Series([job.job for job in jobs])[np.repeat(np.arange(len(jobs)), seconds)],
            "at": np.concatenate([np.arange(job.start + 1, job.end + 1) for job in jobs]),
            **{name: np.concatenate(parts) if parts else empty for name, parts in columns.items()},
        },
        schema=JOB_SAMPLES,
    )
