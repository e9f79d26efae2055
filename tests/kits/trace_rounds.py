"""Samples of simulated nodes, read round by round by a watch of traces with a small model."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tests.kits.outbox import takes
from tests.kits.pca_traces import pca_detector
from tests.kits.simulated_windows import COMPUTES, LENGTH, STRIDE, every, jobs, windows
from tests.kits.watching import NOON
from tocsin.core.detector import Budget
from tocsin.core.errors import SourceError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, SCHEMA, Samples
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.history.known_windows import KnownWindows
from tocsin.history.replay import Replay
from tocsin.judge.answers import DetectorModels, Model
from tocsin.judge.judge import Judge
from tocsin.store.database import Store
from tocsin.store.jobs import upsert
from tocsin.store.windows import WindowStore
from tocsin.traces.fitted import FittedTraces
from tocsin.watch.trace_jobs import TraceJobs
from tocsin.watch.trace_rounds import Spacing, TraceRounds

SINKS = {"log": takes()}


def trained() -> FittedTraces:
    """Trained on six jobs of ann, named fit, that computed."""
    past = jobs(*({"job_id": 900 + n, "outcome": "completed", "end": NOON + 2000} for n in range(6)))
    normal = pl.concat(windows(900 + n, every(20, 2000), cpus=(0, 1)) for n in range(6))
    known = Replay(past, windows=KnownWindows(normal, past))
    return pca_detector().fit(past, known, stage=Stage.RUNNING, seed=0, budget=Budget())


@dataclass
class Nodes:
    """What the CPUs of a cluster do: each row is (node, cpu, raw id, first second, last second, level), from noon on."""

    rows: list[tuple[str, int, int | None, int, int, tuple[float, ...]]] = field(default_factory=list)
    broken: str = ""
    """Why nothing can be read."""
    change: Callable[[Samples], Samples] = lambda samples: samples
    asked: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    first_failed: int | None = None

    def computes(
        self,
        raw: int | None,
        first: int,
        last: int,
        level: tuple[float, ...] = COMPUTES,
        *,
        node: str = "n1",
        cpus: Iterable[int] = (0,),
    ) -> None:
        self.rows += [(node, cpu, raw, first, last, level) for cpu in cpus]

    def __call__(self, since: int, until: int) -> Iterator[Samples]:
        self.asked.append((since, until))
        if self.broken:
            raise SourceError(self.broken)
        found = []
        for node, cpu, raw, first, last, level in self.rows:
            for second in range(max(first, since - NOON), min(last, until - NOON) + 1):
                random = np.random.default_rng((second, cpu, *node.encode()))
                values = np.clip(np.asarray(level) + random.normal(0, 0.02, 3), 0, 1)
                values /= max(1, values.sum())
                found.append((node, cpu, NOON + second, None if raw is None else str(raw), *values.tolist()))
        cpus = pl.DataFrame(found, schema=CPU_SAMPLES, orient="row")
        yield self.change(Samples(cpus, JOB_SAMPLES.to_frame()))


@dataclass
class Lab:
    """A store with jobs, nodes, and a watch of their traces that can be killed and started again."""

    store: Store
    folder: Path
    fitted: FittedTraces
    nodes: Nodes = field(default_factory=Nodes)
    queue: Callable[[], pl.DataFrame] | None = None
    rounds: TraceRounds | None = None

    def add(self, *rows: dict[str, Any]) -> None:
        """Running jobs; the raw id is the id, unless a row says otherwise."""
        upsert(self.store, jobs(*({"raw_id": row["job_id"], **row} for row in rows)).select(SCHEMA.names()))

    def start(self, store: Store | None = None) -> TraceRounds:
        store = store or self.store
        models = {"traces": DetectorModels({Stage.RUNNING: Model(self.fitted, "1")})}
        self.rounds = TraceRounds(
            "lab",
            self.nodes,
            WindowStore(self.folder),
            store,
            Judge(models),
            lambda: self.fitted,
            jobs=TraceJobs(store, "lab", self.queue),
            spacing=Spacing(LENGTH, STRIDE),
            sinks=SINKS,
        )
        return self.rounds

    def run(self, first: int, last: int) -> list[Verdict]:
        """Rounds every 10 s, in seconds after noon; the verdicts that were given."""
        rounds = self.rounds or self.start()
        return [
            verdict
            for second in range(first, last + 1, STRIDE)
            for verdict in rounds.step(NOON + second).verdicts
        ]
