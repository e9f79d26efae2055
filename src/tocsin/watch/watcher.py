"""One round of watching: read the cluster, store what is new, give the verdicts that are due."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from math import inf

import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, conform, key_text
from tocsin.core.ids import parse_key
from tocsin.core.outcomes import Outcome
from tocsin.core.ports import Cluster
from tocsin.core.stages import Stage
from tocsin.core.verdict import Cause, Verdict
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.jobs import merge_in
from tocsin.store.outbox import Subscriptions
from tocsin.watch import stages
from tocsin.watch.accounting import COST_SHARE, OVERLAP, SPAN, Accounting
from tocsin.watch.arrays import missing_arrays
from tocsin.watch.challengers import Challengers
from tocsin.watch.due_verdicts import DueVerdicts, OnVerdicts
from tocsin.watch.job_events import JobEvents
from tocsin.watch.machine_reader import MachineReader
from tocsin.watch.observations import (
    NOTHING,
    changed,
    from_queue,
    settled,
    with_outcomes,
    without_ends,
)
from tocsin.watch.script_reader import GIVE_UP, MOST_UNREAD, ScriptReader
from tocsin.watch.unaccounted import Unaccounted

__all__ = ["Round", "Watcher"]

ROUND_SECONDS = 3
"""Seconds after which alarms on pending jobs are left for the next round, which begins at once and may see a more
urgent job."""
FIRST_PATIENCE = 5.0
"""Seconds for which the first round waits for accounting: late verdicts depend on what was known then, so jobs that
ended while nobody watched get theirs before jobs that are in the queue now."""

CATCH_UP = 30 * 86400
"""Seconds of accounting that the first watch of a cluster reads at most, for what imports have not seen."""

_END = stages.BITS[Stage.END]
_SEEN = ("job", *KEY, "start", "end", "outcome")
_NOTHING_SEEN = NOTHING.select(_SEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round did."""

    at: int
    cost: float
    """Seconds that Slurm took to answer about its queue."""
    queued: int | None = None
    """Jobs that squeue lists by default, which have not ended; None if there is no queue to read."""
    handled: int = 0
    """Records that were new in this round, where there is no queue to read."""
    verdicts: list[Verdict] = field(default_factory=list)
    behind: bool = False
    """There is more to catch up with: the next round should begin at once."""
    problems: list[str] = field(default_factory=list)
    """Problems; what failed will be retried."""


class Watcher:
    """Follows one cluster. Everything that must outlive the process is in the store; the rest is a cache.

    A round may be interrupted at any point, and the next one completes it: jobs are stored before their verdicts,
    verdicts before the instant that was reached, and no verdict is given twice.
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        judge: Judge,
        ledger: Ledger,
        *,
        scripts: ScriptReader | None = None,
        sinks: Subscriptions | None = None,
        events: JobEvents | None = None,
        measure: Callable[[pl.DataFrame], None] | None = None,
        causes: Callable[[pl.DataFrame], list[Cause | None]] | None = None,
        challengers: Challengers | None = None,
        stored: OnVerdicts | None = None,
        by_script: Collection[str] = (),
        patience: float = inf,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`stored` is called during a round with each small batch of stored verdicts, and the current time.

        `by_script`: the detectors that need nothing but the script. `patience`: seconds for which a round waits for
        accounting; a later answer goes to a later round.
        """
        self.cluster = cluster
        self.store = store
        self.ledger = ledger
        self.scripts = scripts
        read = scripts.read if scripts else ledger.script
        self._machine = MachineReader(cluster, ledger, seconds=seconds)
        self._due_verdicts = DueVerdicts(
            store,
            judge,
            ledger,
            script=read,
            sinks=sinks,
            measure=measure,
            causes=causes,
            challengers=challengers,
            stored=stored,
            by_script=by_script,
            machine_changed=self._machine.read_before_alarms,
            seconds=seconds,
        )
        self._events = events or JobEvents(sinks or {})
        self._seconds = seconds
        self._progress: watching.Progress | None = None
        self._last_read: int | None = None
        """When the last complete round read the queue."""
        self._accounting = Accounting(cluster, patience=patience)
        self._queue_seen: dict[str, int] = {}
        self._ended_seen: dict[str, int] = {}
        self._living: set[str] = set()
        self._unaccounted = Unaccounted()
        self._awaited = _NOTHING_SEEN
        """Jobs whose end is stored, while the verdict on it waits for accounting."""

    def step(self, now: int) -> Round:
        """Run one round. Raises ClusterError or StoreError if nothing can be done; call it again later."""
        self._machine.read(now)
        problems = [self._machine.problem] if self._machine.problem else []
        progress, recent = self._begin(now)
        waited = self.cluster.waited()
        dump = self.cluster.queue()
        cost = self.cluster.waited() - waited
        queue = from_queue(dump, began=progress.began)
        self._due_verdicts.load([*queue["job"], *recent["job"]])
        queue = queue.with_columns(self._due_verdicts.given(queue))
        recent = recent.filter((self._due_verdicts.given(recent) & _END) == 0)
        self._note_ends(queue, recent, progress, now)
        answer = self._accounting.read(
            progress,
            now,
            wanted=len(self._unaccounted) > 0 or now - progress.reached > SPAN,
            patience=FIRST_PATIENCE if self._last_read is None else 0.0,
        )
        problems += self._accounting.problems
        accounted = answer.ended if answer else NOTHING
        before = pl.col("end") < progress.began
        past, ended = accounted.filter(before), accounted.filter(~before)
        self._due_verdicts.load(ended["job"])
        within = max(ROUND_SECONDS, COST_SHARE * cost)
        complete = answer is not None and answer.complete
        verdicts = self._settle(queue, ended, past, recent, now, problems, caught_up=complete, within=within)
        if answer is not None:
            # Old records are complete; of the recent ones, some may still be on their way.
            reached = min(answer.until, self._unaccounted.floor(now)) if complete else answer.until
            self._progress = watching.advance(self.store, progress, reached)
        self._last_read = now
        self.ledger.advance(now)
        return Round(
            at=now,
            queued=dump["outcome"].null_count(),
            cost=cost,
            verdicts=verdicts,
            behind=(answer is not None and not complete) or self._left_some(),
            problems=problems,
        )

    # --- looking ---------------------------------------------------------------------------------

    def _begin(self, now: int) -> tuple[watching.Progress, pl.DataFrame]:
        """The progress of the watch; in the first round, also jobs whose end may have been stored without a verdict."""
        name = self.cluster.name
        if self._progress is not None and self._last_read is not None:
            return self._progress, _NOTHING_SEEN
        self._progress = watching.begin(self.store, name, now, catch_up=CATCH_UP)
        # Jobs that were alive when the last process stopped, and are not in the queue now, have ended meanwhile.
        self._living |= set(watching.living(self.store, name).select(key_text()).to_series())
        if self.scripts is not None:
            self.scripts.read_later(self._due_verdicts.without_script(name, now - GIVE_UP, MOST_UNREAD), now)
        since = max(self._progress.began, self._progress.reached - OVERLAP)
        return self._progress, watching.ended_since(self.store, name, since).with_columns(key_text()).select(
            _SEEN
        )

    def _note_ends(
        self, queue: pl.DataFrame, recent: pl.DataFrame, progress: watching.Progress, now: int
    ) -> None:
        """Note the jobs that left the queue since the last reading, or ended without a verdict on their end."""
        alive = queue.filter(pl.col("outcome").is_null())
        over = queue.filter(pl.col("outcome").is_not_null() & ((pl.col("given") & _END) == 0))
        over = pl.concat([over.select(_SEEN), recent])
        floor = progress.reached if self._last_read is None else self._last_read
        self._unaccounted.remove(alive["job"])
        self._unaccounted.add(dict.fromkeys(self._living.difference(queue["job"]), floor), now)
        self._unaccounted.add(dict(over.select("job", pl.col("end").fill_null(floor)).iter_rows()), now)
        # An array leaves the queue when its last task starts: it has not ended.
        self._living = set(alive.filter(pl.col("array").is_null())["job"])

    # --- settling --------------------------------------------------------------------------------

    def _settle(
        self,
        queue: pl.DataFrame,
        ended: pl.DataFrame,
        past: pl.DataFrame,
        recent: pl.DataFrame,
        now: int,
        problems: list[str],
        *,
        caught_up: bool,
        within: float,
    ) -> list[Verdict]:
        """Store the observations, then give the verdicts that are due; those that can wait, `within` these seconds.

        `past`: the jobs that ended before the watch began. They are stored and get no verdict.
        """
        queued = with_outcomes(queue.filter((pl.col("given") & _END) == 0), now=now).drop("given")
        shown = queued.filter(pl.col("outcome").is_not_null()).select(_SEEN)
        awaited = pl.concat([self._awaited, recent, shown]).unique("job", keep="last", maintain_order=True)
        over = settled(awaited, now=now).join(ended, on="job", how="anti")
        arrays, kept = self._arrays(pl.concat([queue, ended.with_columns(self._due_verdicts.given(ended))]))
        due = self._due([queue, recent], [ended, arrays, kept, over], now)
        if self.scripts is not None:
            (queued, ended, arrays), due = self.scripts.add_to((queued, ended, arrays), due, now)
            problems += [self.scripts.problem] if self.scripts.problem else []
        lost = self._lost(now) if caught_up else NOTHING
        fresh_queued, queue_seen = changed(queued, self._queue_seen)
        fresh_past, past_seen = changed(past, self._ended_seen)
        fresh_ended, ended_seen = changed(ended, self._ended_seen)
        fresh = [frame for frame in (fresh_queued, fresh_past, fresh_ended, arrays, lost) if frame.height]
        if fresh or over.height:
            # Sinks get an end once: from accounting, or when it had its time.
            events = [without_ends(fresh_queued), fresh_ended, arrays, lost, self._records(queued, over)]
            with self.store.writing() as connection:
                for frame in fresh:
                    merge_in(connection, frame.select(SCHEMA.names()))
                for frame in events:
                    self._events.put(connection, frame)
        self._queue_seen, self._ended_seen = queue_seen, past_seen | ended_seen or self._ended_seen
        keys = [frame.select(KEY) for frame in fresh]
        verdicts = self._due_verdicts.give(due, keys, now, within=within)
        if self.scripts is not None:
            verdicts += self._due_verdicts.give_again(self.scripts.late, now)
        self._unaccounted.remove([*over["job"], *past["job"], *ended["job"], *lost["job"]])
        self._awaited = awaited.filter((self._due_verdicts.given(awaited) & _END) == 0)
        self._forget({*queue["job"], *self._ended_seen, *self._awaited["job"]})
        return verdicts

    def _records(self, queued: pl.DataFrame, over: pl.DataFrame) -> pl.DataFrame:
        """The full records of ended jobs: from the queue, or as stored if they have left it."""
        here = queued.join(over, on="job", how="semi")
        gone = over.join(here, on="job", how="anti")
        if gone.is_empty():
            return here
        kept = watching.jobs_named(self.store, gone.select(KEY)).with_columns(key_text())
        return pl.concat([here, kept.select(here.columns)])

    def _due(
        self, open_ends: Sequence[pl.DataFrame], whole: Sequence[pl.DataFrame], now: int
    ) -> pl.DataFrame:
        """Keys with the bits of stages that were reached without a verdict, and whether the job has ended.

        The ends in `open_ends` wait for accounting.
        """
        before, after = (pl.concat([frame.select(_SEEN) for frame in part]) for part in (open_ends, whole))
        due = (
            pl.concat(
                [
                    before.with_columns(reached=stages.reached(now) & ~_END),
                    after.with_columns(reached=stages.reached(now)),
                ]
            )
            .group_by("job", *KEY, maintain_order=True)
            .agg(pl.col("reached").bitwise_or(), over=pl.col("outcome").is_not_null().any())
        )
        due = due.with_columns(due=pl.col("reached") & ~self._due_verdicts.given(due))
        return due.filter(pl.col("due") != 0)

    def _arrays(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The arrays of tasks seen for the first time: those without a stored record, and those with one."""
        tasks = rows.filter(pl.col("task").is_not_null() & (pl.col("given") == 0)).drop("given")
        if tasks.is_empty():
            return NOTHING, NOTHING
        here = rows.filter(pl.col("task").is_null()).select("job_id", "submit")
        kept = watching.arrays(self.store, self.cluster.name, tasks["job_id"].unique())
        missing = missing_arrays(tasks, pl.concat([here, kept.select("job_id", "submit")]))
        made, kept = (conform(frame).with_columns(key_text()) for frame in (missing, kept))
        self._due_verdicts.load([*made["job"], *kept["job"]])
        return made, kept

    def _lost(self, now: int) -> pl.DataFrame:
        """Jobs whose end accounting will no longer report."""
        keys = [parse_key(job) for job in self._unaccounted.given_up(now)]
        if not keys:
            return NOTHING
        frame = pl.DataFrame(keys, schema=NOTHING.select(KEY).schema, orient="row")
        unknown = (pl.lit(str(Outcome.UNKNOWN)).alias("outcome"), pl.lit(now, pl.Int64).alias("known_at"))
        return conform(frame.with_columns(unknown)).with_columns(key_text())

    def _left_some(self) -> bool:
        """Whether verdicts were left for the next round."""
        return bool(self._due_verdicts.left or (self.scripts is not None and self.scripts.left))

    def _forget(self, present: set[str]) -> None:
        """Forget jobs that are neither in the queue nor in the last answer of accounting."""
        self._due_verdicts.forget(present)
        if self.scripts is not None:
            self.scripts.forget({parse_key(job) for job in present})
