"""One round of watching a stream of job events: store what arrived, give the verdicts that are due, then commit."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import polars as pl

from tocsin.core.errors import NotFound
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.intake import Rejects
from tocsin.core.machine import Machine
from tocsin.core.stages import EARLY_SECONDS
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.jobs import merge_in
from tocsin.store.outbox import Subscriptions
from tocsin.store.scriptfiles import read_script, save_script
from tocsin.watch import stages
from tocsin.watch.accounting import OVERLAP
from tocsin.watch.arrays import missing_arrays
from tocsin.watch.challengers import Challengers
from tocsin.watch.due_verdicts import DueVerdicts
from tocsin.watch.watcher import Round

__all__ = ["EventSource", "StreamRounds"]

WAIT = 0.5
"""Seconds to wait for events in a round that finds none."""


class Arrived(Protocol):
    """Records of jobs in order, the scripts by row, and how many events there were."""

    @property
    def jobs(self) -> pl.DataFrame: ...

    @property
    def scripts(self) -> Mapping[int, str]: ...

    @property
    def read(self) -> int: ...


class EventSource(Protocol):
    """Job events of one cluster, such as `sources.kafka.KafkaJobs`."""

    name: str
    """The cluster's name."""
    rejects: Rejects

    @property
    def caught_up(self) -> bool: ...

    @property
    def problem(self) -> str: ...

    def poll(self, seconds: float) -> Arrived: ...

    def commit(self) -> None: ...


class StreamRounds:
    """Follows one cluster by its events, which may be repeated. Events are committed once their jobs and verdicts are
    stored, so a round may be interrupted at any point, and the next one, or the next process, completes it."""

    def __init__(
        self,
        source: EventSource,
        store: Store,
        judge: Judge,
        ledger: Ledger,
        *,
        folder: Path,
        sinks: Subscriptions | None = None,
        measure: Callable[[pl.DataFrame], None] | None = None,
        challengers: Challengers | None = None,
        notify: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """`folder`: where scripts are stored."""
        self.source, self.store, self.ledger = source, store, ledger
        self._folder, self._notify = folder, notify
        self._due_verdicts = DueVerdicts(
            store,
            judge,
            ledger,
            script=self._script,
            sinks=sinks,
            measure=measure,
            challengers=challengers,
        )
        self._progress: watching.Progress | None = None
        self._arrived: Arrived | None = None
        """Polled but not committed."""
        self._counted: dict[str, int] = {}
        self._young = pl.DataFrame(schema={**{name: SCHEMA[name] for name in KEY}, "start": pl.Int64()})
        """Running jobs that had not reached `early`: no event reports when they do."""
        ledger.machine = Machine(
            cluster=source.name, missing={"nodes": "job events do not include nodes, partitions and limits"}
        )

    def step(self, now: int) -> Round:
        """Run one round. Raises StoreError if nothing can be stored; call it again later."""
        progress = self._begin(now)
        if self._arrived is None:
            self._arrived = self.source.poll(WAIT)
        jobs = self._prepared(self._arrived, now)
        arrays = self._store(progress, jobs, self._arrived.read)
        keys = pl.concat([jobs.select(KEY), arrays]).unique(maintain_order=True)
        stored = watching.jobs_named(self.store, pl.concat([keys, self._early(now)]))
        # what ended before the watch began is history, and gets no verdict
        watched = stored.filter((pl.col("end") >= progress.began - OVERLAP).fill_null(True))
        verdicts = self._due_verdicts.give(self._due(watched, now), [keys] if keys.height else [], now)
        self._due_verdicts.forget(set())
        self._follow(stored, now)
        read, self._arrived = self._arrived.read, None
        if read:
            self.source.commit()
        self.ledger.advance(now)
        problem = self.source.problem
        return Round(
            at=now,
            handled=jobs.height,
            cost=0,
            verdicts=verdicts,
            behind=bool(read) or not self.source.caught_up,
            problems=[f"Kafka does not answer: {problem}"] if problem else [],
        )

    def _begin(self, now: int) -> watching.Progress:
        if self._progress is None:
            name = self.source.name
            living = watching.jobs_named(self.store, watching.living(self.store, name))
            self._follow(living, 0)
            self._progress = watching.begin(self.store, name, now)
        return self._progress

    # --- storing ---------------------------------------------------------------------------------

    def _prepared(self, arrived: Arrived, now: int) -> pl.DataFrame:
        """The jobs that arrived; their scripts are stored first. An outcome is known from now on."""
        kept = {row: save_script(self._folder, text) for row, text in arrived.scripts.items()}
        scripts = [kept.get(row, given) for row, given in enumerate(arrived.jobs["script"].to_list())]
        return arrived.jobs.with_columns(
            pl.Series("script", scripts, dtype=pl.String),
            known_at=pl.when(pl.col("outcome").is_not_null()).then(pl.lit(now, pl.Int64)),
        )

    def _store(self, progress: watching.Progress, jobs: pl.DataFrame, read: int) -> pl.DataFrame:
        """Store jobs, arrays known only by their tasks, and counts; returns the keys of all arrays of tasks."""
        rejected = self._fresh_rejects()
        tasks = jobs.filter(pl.col("task").is_not_null())
        known = watching.arrays(self.store, self.source.name, tasks["job_id"].unique())
        here = jobs.filter(pl.col("task").is_null()).select(KEY)
        made = missing_arrays(tasks, pl.concat([here, known]).select("job_id", "submit"))
        if read:
            with self.store.writing() as connection:
                for frame in (jobs, made):
                    merge_in(connection, frame)
                watching.count_events(connection, progress, read, rejected)
            self._counted = dict(self.source.rejects.counts)
        return pl.concat([made.select(KEY), known])

    def _fresh_rejects(self) -> dict[str, int]:
        """Events that were unreadable since the last round; each reason is reported once."""
        counts = dict(self.source.rejects.counts)
        for reason in counts.keys() - self._counted.keys():
            place = self.source.rejects.examples.get(reason, "")
            self._notify(f"events that cannot be read are skipped and counted: {reason} (first in {place})")
        return {reason: number - self._counted.get(reason, 0) for reason, number in counts.items()}

    # --- verdicts --------------------------------------------------------------------------------

    def _due(self, jobs: pl.DataFrame, now: int) -> pl.DataFrame:
        """Keys with the bits of stages that were reached without a verdict, and whether the job has ended."""
        named = jobs.with_columns(key_text())
        self._due_verdicts.load(named["job"])
        due = named.select(
            "job",
            *KEY,
            due=stages.reached(now) & ~self._due_verdicts.given(named),
            over=pl.col("outcome").is_not_null(),
        )
        return due.filter(pl.col("due") != 0)

    def _early(self, now: int) -> pl.DataFrame:
        return self._young.filter(pl.col("start") + EARLY_SECONDS <= now).select(KEY)

    def _follow(self, jobs: pl.DataFrame, now: int) -> None:
        """Remember the running jobs that have not reached `early` yet."""
        young = pl.col("outcome").is_null() & (pl.col("start") + EARLY_SECONDS > now)
        others = self._young.join(jobs.select(KEY), on=KEY, how="anti", nulls_equal=True)
        self._young = pl.concat([others, jobs.filter(young.fill_null(False)).select(*KEY, "start")])

    def _script(self, reference: str) -> str | None:
        with suppress(NotFound):
            return read_script(self._folder, reference)
        return None
