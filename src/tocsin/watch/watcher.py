"""One round of watching: look at the cluster, store what is new, give the verdicts that are due."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, conform, key_text
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.outcomes import Outcome
from tocsin.core.ports import Cluster
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.jobs import merge_in
from tocsin.watch import stages
from tocsin.watch.absent import Absent
from tocsin.watch.arrays import missing_arrays
from tocsin.watch.docket import Docket
from tocsin.watch.scripts import Scripts
from tocsin.watch.sight import NOTHING, changed, from_accounting, from_queue, told_by_queue

__all__ = ["COST_SHARE", "Round", "Watcher"]

COST_SHARE = 20
"""What was asked of Slurm is asked again after so many times the time that the answer took, at the earliest."""
OVERLAP = 300  # seconds: accounting may come late, so the last minutes before are looked at again
ACCOUNTING_EVERY = (
    60  # seconds, when nothing calls for it: some jobs come and go between two looks at the queue
)
MACHINE_EVERY = 600
SPAN = 86400  # seconds of accounting in one round: after a long outage the past is caught up with day by day

_END, _SUBMIT = stages.BITS[Stage.END], stages.BITS[Stage.SUBMIT]
_SEEN = ("job", *KEY, "start", "end", "outcome")
_NOTHING_SEEN = NOTHING.select(_SEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did."""

    at: int
    queued: int
    """Records in the queue."""
    cost: float
    """Seconds that the queue's answer took."""
    verdicts: list[Verdict] = field(default_factory=list)
    behind: bool = False
    """There is more to catch up with: the next round need not wait."""
    troubles: list[str] = field(default_factory=list)
    """What went wrong and will be tried again."""


class Watcher:
    """Follows one cluster. All that must outlive the process is in the store; what is kept here is a cache of it.

    A round that breaks off at any point is made good by the next one: jobs are stored before their verdicts, verdicts
    before the instant that was reached, and a verdict that is there is never given again.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        judge: Judge,
        ledger: Ledger,
        *,
        scripts: Scripts | None = None,
        sinks: Sequence[str] = (),
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self.store = store
        self.ledger = ledger
        self.scripts = scripts
        read = scripts.read if scripts else ledger.script
        self._docket = Docket(store, judge, ledger, script=read, sinks=sinks)
        self._seconds = seconds
        self._progress: watching.Progress | None = None
        self._looked: int | None = None
        """When the last round that was completed looked at the queue."""
        self._machine_at: int | None = None
        self._accounted_at = 0
        self._accounting_after = 0.0
        self._queue_seen: dict[str, int] = {}
        self._ended_seen: dict[str, int] = {}
        self._living: set[str] = set()
        self._absent = Absent()

    def step(self, now: int) -> Round:
        """One round. It raises ClusterError or StoreError where nothing can be done; then call it again later."""
        troubles: list[str] = []
        self._look_at_machine(now, troubles)
        progress, recent = self._begin(now)
        asked = self._seconds()
        dump = self.cluster.queue()
        cost = self._seconds() - asked
        queue = from_queue(dump, began=progress.began)
        self._docket.ask([*queue["job"], *recent["job"]])
        queue = queue.with_columns(self._docket.given(queue))
        self._miss(queue, progress, now)
        ended, until = self._accounting(progress, now, troubles)
        self._docket.ask(ended["job"])
        verdicts = self._settle(queue, ended, recent, now, troubles, caught_up=until == now)
        if until is not None:
            self._accounted_at = now
            # While it catches up the past is told as it is; of the present a part may still be on its way.
            reached = until if until < now else self._absent.floor(now)
            self._progress = watching.advance(self.store, progress, reached)
        self._looked = now
        self.ledger.advance(now)
        return Round(
            at=now,
            queued=dump.height,
            cost=cost,
            verdicts=verdicts,
            behind=until is not None and until < now,
            troubles=troubles,
        )

    # --- looking ---------------------------------------------------------------------------------

    def _look_at_machine(self, now: int, troubles: list[str]) -> None:
        """Nodes and limits; without any, no round, for a verdict that lacks them could not be given again."""
        if self._machine_at is not None and now - self._machine_at < MACHINE_EVERY:
            return
        try:
            self.ledger.machine = self.cluster.machine()
            self._machine_at = now
        except ClusterError as error:
            if self._machine_at is None:
                raise
            troubles.append(str(error))

    def _begin(self, now: int) -> tuple[watching.Progress, pl.DataFrame]:
        """Where the watch stands; at the first round, also the jobs whose end may have been stored without a verdict."""
        name = self.cluster.name
        if self._progress is not None and self._looked is not None:
            return self._progress, _NOTHING_SEEN
        self._progress = watching.begin(self.store, name, now)
        # Who lived when the last process stopped, and is not in the queue now, has ended meanwhile.
        self._living |= set(watching.living(self.store, name).select(key_text()).to_series())
        since = max(self._progress.began, self._progress.reached - OVERLAP)
        return self._progress, watching.ended_since(self.store, name, since).with_columns(key_text()).select(
            _SEEN
        )

    def _miss(self, queue: pl.DataFrame, progress: watching.Progress, now: int) -> None:
        """Take note of who lived at the last look and is gone, or has ended without a verdict on its end."""
        alive = queue.filter(pl.col("outcome").is_null())
        over = queue.filter(pl.col("outcome").is_not_null() & ((pl.col("given") & _END) == 0))
        floor = progress.reached if self._looked is None else self._looked
        self._absent.remove(alive["job"])
        self._absent.add(dict.fromkeys(self._living.difference(queue["job"]), floor), now)
        self._absent.add(dict(over.select("job", pl.col("end").fill_null(floor)).iter_rows()), now)
        # An array leaves the queue when its last task starts: that is no end.
        self._living = set(alive.filter(pl.col("array").is_null())["job"])

    def _accounting(
        self, progress: watching.Progress, now: int, troubles: list[str]
    ) -> tuple[pl.DataFrame, int | None]:
        """The jobs that ended, and the instant up to which accounting told all; None where it did not."""
        wanted = len(self._absent) or now - self._accounted_at >= ACCOUNTING_EVERY
        if not wanted or now < self._accounting_after:
            return NOTHING, None
        until = min(now, progress.reached + SPAN)
        asked = self._seconds()
        try:
            frames = [
                from_accounting(frame, began=progress.began, now=now)
                for frame in self.cluster.accounting(progress.reached - OVERLAP, until + 1)
            ]
        except (ClusterError, SourceError) as error:
            troubles.append(str(error))
            return NOTHING, None
        self._accounting_after = now + COST_SHARE * (self._seconds() - asked) if until == now else now
        return pl.concat([NOTHING, *frames]).unique(KEY, keep="last", maintain_order=True), until

    # --- settling --------------------------------------------------------------------------------

    def _settle(
        self,
        queue: pl.DataFrame,
        ended: pl.DataFrame,
        recent: pl.DataFrame,
        now: int,
        troubles: list[str],
        *,
        caught_up: bool,
    ) -> list[Verdict]:
        """Store what was seen, then give the verdicts that are due."""
        told = told_by_queue(queue.filter((pl.col("given") & _END) == 0), now=now).drop("given")
        settled = told.filter(pl.col("outcome").is_not_null())["job"]
        arrays, kept = self._arrays(pl.concat([queue, ended.with_columns(self._docket.given(ended))]))
        due = self._due(queue, settled, [ended, arrays, kept, recent], now)
        told, ended, arrays, due = self._with_scripts(told, ended, arrays, due, now, troubles)
        lost = self._lost(now) if caught_up else NOTHING
        fresh_told, queue_seen = changed(told, self._queue_seen)
        fresh_ended, ended_seen = changed(ended, self._ended_seen)
        fresh = [frame for frame in (fresh_told, fresh_ended, arrays, lost) if frame.height]
        if fresh:
            with self.store.writing() as connection:
                for frame in fresh:
                    merge_in(connection, frame.select(SCHEMA.names()))
        self._queue_seen, self._ended_seen = queue_seen, ended_seen or self._ended_seen
        verdicts = self._docket.give(due, [frame.select(KEY) for frame in fresh], now)
        self._absent.remove([*settled, *ended["job"], *lost["job"]])
        self._forget({*queue["job"], *self._ended_seen})
        return verdicts

    def _due(
        self, queue: pl.DataFrame, settled: pl.Series, others: Sequence[pl.DataFrame], now: int
    ) -> pl.DataFrame:
        """Keys with the bits of the stages that were reached and have no verdict, and whether the job is over."""
        # Of a job that ended in the queue, the end itself waits for accounting.
        ends = pl.col("outcome").is_null() | pl.col("job").is_in(settled.implode())
        by_queue = queue.select(
            *_SEEN, reached=pl.when(ends).then(stages.reached(now)).otherwise(stages.reached(now) & ~_END)
        )
        by_others = pl.concat([frame.select(_SEEN) for frame in others]).with_columns(
            reached=stages.reached(now)
        )
        due = (
            pl.concat([by_queue, by_others])
            .group_by("job", *KEY, maintain_order=True)
            .agg(pl.col("reached").bitwise_or(), over=pl.col("outcome").is_not_null().any())
        )
        due = due.with_columns(due=pl.col("reached") & ~self._docket.given(due))
        return due.filter(pl.col("due") != 0)

    def _arrays(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The arrays of tasks that are seen for the first time: those that have no record yet, and those that have."""
        tasks = rows.filter(pl.col("task").is_not_null() & (pl.col("given") == 0)).drop("given")
        if tasks.is_empty():
            return NOTHING, NOTHING
        here = rows.filter(pl.col("task").is_null()).select("job_id", "submit")
        kept = watching.arrays(self.store, self.cluster.name, tasks["job_id"].unique())
        missing = missing_arrays(tasks, pl.concat([here, kept.select("job_id", "submit")]))
        made, kept = (conform(frame).with_columns(key_text()) for frame in (missing, kept))
        self._docket.ask([*made["job"], *kept["job"]])
        return made, kept

    def _with_scripts(
        self,
        told: pl.DataFrame,
        ended: pl.DataFrame,
        arrays: pl.DataFrame,
        due: pl.DataFrame,
        now: int,
        troubles: list[str],
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """All of them with references to the scripts that were read; a job whose turn will come waits for it."""
        if self.scripts is None:
            return told, ended, arrays, due
        new = due.filter(stages.with_stage(Stage.SUBMIT))["job"].implode()
        batch = pl.col("job").is_in(new) & pl.col("interactive").ne_missing(pl.lit(True))
        asked = pl.concat(frame.filter(batch) for frame in (told, ended, arrays))
        unread = {
            JobKey(*key): None
            for *key, script in asked.select(*KEY, "script").iter_rows()
            if not self.scripts.kept(script)
        }
        found, waiting = self.scripts.fetch(unread)
        if self.scripts.trouble:
            troubles.append(self.scripts.trouble)
        names = {str(key): reference for key, reference in found.items()}
        read = pl.col("job").replace_strict(names, default=pl.col("script"), return_dtype=pl.String)
        told, ended, arrays = (
            frame.with_columns(read.alias("script")) if names else frame for frame in (told, ended, arrays)
        )
        # Who has gone on, or would be late, is judged without; and so is an array that only its tasks tell of.
        patient = told.filter(
            pl.col("job").is_in([str(key) for key in waiting])
            & (pl.col("state") == "PENDING")
            & (pl.col("submit") + stages.LATE_SECONDS > now)
        )["job"]
        held = pl.col("job").is_in(patient.implode())
        due = due.with_columns(due=pl.when(held).then(pl.col("due") & ~_SUBMIT).otherwise("due"))
        return told, ended, arrays, due.filter(pl.col("due") != 0)

    def _lost(self, now: int) -> pl.DataFrame:
        """Jobs of whose end nobody will tell any more."""
        keys = [parse_key(job) for job in self._absent.given_up(now)]
        if not keys:
            return NOTHING
        frame = pl.DataFrame(keys, schema=NOTHING.select(KEY).schema, orient="row")
        unknown = (pl.lit(str(Outcome.UNKNOWN)).alias("outcome"), pl.lit(now, pl.Int64).alias("known_at"))
        return conform(frame.with_columns(unknown)).with_columns(key_text())

    def _forget(self, present: set[str]) -> None:
        """Keep nothing of jobs that neither the queue nor the last answer of accounting has."""
        self._docket.forget(present)
        if self.scripts is not None:
            self.scripts.forget({parse_key(job) for job in present})
