"""Gives the verdicts that are due, each exactly once."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

import polars as pl

from tocsin.core.decision import Decision
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, key_text, reached_at
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import Cause, Verdict
from tocsin.history.ledger import Ledger
from tocsin.judge.decision_batches import DecisionBatches
from tocsin.judge.judge import Judge
from tocsin.judge.later_script import repeated_with_script
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.jobs import merge_in
from tocsin.store.outbox import Subscriptions
from tocsin.store.screenings import without_script
from tocsin.store.verdicts import last_at_stage, next_seq
from tocsin.watch import stages
from tocsin.watch.challengers import Challengers, Judged
from tocsin.watch.known_at_stage import KnownAtStage

__all__ = ["DueVerdicts", "OnVerdicts"]

OnVerdicts = Callable[[Sequence[Verdict], int], None]
"""Called with verdicts once they are stored, and the current time."""

CHUNK = 1000  # jobs assessed together


class DueVerdicts:
    """Its memory is a cache of the store: which stages of the current jobs have a verdict."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        ledger: Ledger,
        *,
        script: Callable[[str], str | None],
        sinks: Subscriptions | None = None,
        measure: Callable[[pl.DataFrame], None] | None = None,
        causes: Callable[[pl.DataFrame], list[Cause | None]] | None = None,
        challengers: Challengers | None = None,
        stored: OnVerdicts | None = None,
        by_script: Collection[str] = (),
        machine_changed: Callable[[], bool] = lambda: False,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`measure` stores the first metrics of jobs that reach `early`, given by key.

        `causes` finds why ended jobs failed, one for each. `stored` is called with the verdicts of each transaction and
        the current time: actions that must precede the start of a job happen there. `by_script` names the detectors
        that need nothing but the script, which can be asked again when a script was read late. `machine_changed` is
        called before alarms on jobs that have not ended, and reads the machine again if it is old.
        """
        self.store = store
        self.judge = judge
        self.ledger = ledger
        self.sinks = sinks
        self._measure = measure
        self._causes = causes
        self._challengers = challengers
        self._stored = stored
        self.by_script = frozenset(by_script)
        self._machine_changed = machine_changed
        self._seconds = seconds
        self.left: list[str] = []
        """The jobs that the last call of `give` left for the next."""
        self._known = KnownAtStage(ledger, script)
        self._given: dict[str, int] = {}

    def load(self, jobs: Iterable[str]) -> None:
        """Load which verdicts these jobs have."""
        unknown = [job for job in jobs if job not in self._given]
        if unknown:
            found = stages.bits_of(watching.given(self.store, unknown))
            self._given.update((job, found.get(job, 0)) for job in unknown)

    def given(self, rows: pl.DataFrame) -> pl.Series:
        """For each row, the bits of the stages that have a verdict."""
        return pl.Series("given", [self._given.get(job, 0) for job in rows["job"].to_list()], dtype=pl.Int64)

    def forget(self, present: set[str]) -> None:
        """Forget all jobs but these."""
        self._given = {job: bits for job, bits in self._given.items() if job in present}

    def give(
        self, due: pl.DataFrame, fresh: Sequence[pl.DataFrame], now: int, *, within: float = inf
    ) -> list[Verdict]:
        """Give the verdicts that are due, from the jobs as stored, and store them.

        `fresh` are the keys of jobs changed in the store: the ledger learns them first. After `within` seconds,
        alarms on pending jobs are left for the next call, since a more urgent job may have been submitted meanwhile.
        """
        deadline, self.left = self._seconds() + within, []
        if self._challengers:
            self._challengers.judged = None
        if due.is_empty() and not fresh:
            return []
        early = due.filter(stages.with_stage(Stage.EARLY))
        if self._measure and early.height:
            self._measure(early.select(KEY))
        jobs = watching.jobs_named(self.store, pl.concat([due.select(KEY), *fresh]))
        # A pending array does not count as a job: its tasks do, as they start.
        waiting = pl.col("array").is_not_null() & pl.col("outcome").is_null()
        self.ledger.learn(jobs.filter(~waiting))
        jobs = jobs.join(due.select(*KEY, "due", "over"), on=KEY, nulls_equal=True)
        jobs = jobs.sort("submit", "job_id", "task", nulls_last=False)
        by_stage = {
            stage: jobs.filter(stages.with_stage(stage) & reached_at(stage).is_not_null())
            for stage in stages.BITS
        }
        by_stage[Stage.END] = self._with_scripts_of_arrays(by_stage[Stage.END])
        counted = self._known.prepare(by_stage)
        given: list[Verdict] = []
        for stage, asked in by_stage.items():
            for first in range(0, asked.height, CHUNK):
                part, until = asked.slice(first, CHUNK), counted[stage][first : first + CHUNK]
                given += self._give_in_batches(part, stage, until, now, deadline)
        if self._challengers:
            judged = ~key_text().is_in(self.left)
            jobs_of = {stage: asked.drop("due", "over").filter(judged) for stage, asked in by_stage.items()}
            self._challengers.judged = Judged(jobs_of, self._known, now)
        return given

    def _give_in_batches(
        self, jobs: pl.DataFrame, stage: Stage, known_until: list[int], now: int, deadline: float
    ) -> list[Verdict]:
        """Give the verdicts at one stage, the most urgent first, in small transactions."""

        def assessed() -> DecisionBatches:
            return DecisionBatches(
                self.judge,
                jobs.drop("due", "over"),
                stage,
                known=self._known,
                at=now,
                late=jobs.select(stages.late(stage, now)).to_series().to_list(),
                known_until=known_until,
            )

        batches = assessed()
        if stage is not Stage.END and batches.has_alarms and self._machine_changed():
            batches = assessed()
        given = [
            verdict for rows in batches.first for verdict in self._give_batch(batches, rows, jobs, stage, now)
        ]
        keys = jobs.select(key_text()).to_series()
        patient = jobs.select(can_wait=stages.can_wait(stage, now)).to_series()
        for number, rows in enumerate(batches.slow):
            if number and self._seconds() > deadline:  # give at least one batch, to make progress
                self.left += [keys[row] for row in rows if patient[row]]
                rows = [row for row in rows if not patient[row]]
            given += self._give_batch(batches, rows, jobs, stage, now)
        return given

    def _give_batch(
        self, batches: DecisionBatches, rows: list[int], jobs: pl.DataFrame, stage: Stage, now: int
    ) -> list[Verdict]:
        if not rows:
            return []
        decision = batches.decide(rows)
        if stage is Stage.END and self._causes:
            decision = _with_causes(decision, self._causes(jobs[rows]))
        given = self._record(decision)
        if self._stored:
            self._stored(given, now)
        return given

    def give_running(self, jobs: pl.DataFrame, now: int) -> list[Verdict]:
        """Give another verdict at the stage `running` to each of these jobs, whose traces raise an alarm."""
        if jobs.is_empty():
            return []
        seq = next_seq(self.store, jobs.select(key_text()).to_series().to_list(), Stage.RUNNING)
        self._known.prepare({})
        self.ledger.now = now
        until = [now] * jobs.height
        return self._record(
            self.judge.decide(jobs, Stage.RUNNING, known=self._known, at=now, seq=seq, known_until=until)
        )

    def give_again(self, scripts: Mapping[JobKey, str], now: int) -> list[Verdict]:
        """Store the scripts that were read after the verdict on the submission, by reference.

        A verdict is repeated if its script calls for a finding.
        """
        if not scripts:
            return []
        keys = pl.DataFrame(list(scripts), schema={name: SCHEMA[name] for name in KEY}, orient="row")
        references = pl.Series("script", list(scripts.values()), dtype=pl.String)
        jobs = watching.jobs_named(self.store, keys).drop("script")
        jobs = jobs.join(keys.with_columns(references), on=KEY, nulls_equal=True)
        jobs = jobs.select(SCHEMA.names()).sort("submit", "job_id")
        with self.store.writing() as connection:
            merge_in(connection, jobs)
        earlier = last_at_stage(self.store, jobs.select(key_text()).to_series().to_list(), Stage.SUBMIT)
        jobs = jobs.filter(key_text().is_in(list(earlier)))
        judge = replace(
            self.judge,
            detectors={n: models for n, models in self.judge.detectors.items() if n in self.by_script},
        )
        self._known.prepare({})
        seq = [earlier[job].seq + 1 for job in jobs.select(key_text()).to_series()]
        decision = judge.decide(jobs, Stage.SUBMIT, known=self._known, at=now, seq=seq)
        verdicts = [repeated_with_script(earlier[verdict.job], verdict) for verdict in decision.verdicts]
        given = self._record(replace(decision, verdicts=[verdict for verdict in verdicts if verdict]))
        if self._stored and given:
            self._stored(given, now)
        return given

    def without_script(self, cluster: str, since: int, limit: int) -> list[JobKey]:
        """The jobs, alive or ended since then, that could not be classified because their script was not read."""
        if not self.by_script:
            return []
        keys = without_script(self.store, cluster, since=since, limit=limit)
        verdicts = last_at_stage(self.store, [str(key) for key in keys], Stage.SUBMIT)
        return [key for key in keys if self.by_script & verdicts[str(key)].missing.keys()]

    def _with_scripts_of_arrays(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Tasks with the script of their array, since only that one was read."""
        bare = jobs.filter(pl.col("task").is_not_null() & pl.col("script").is_null())
        if bare.is_empty():
            return jobs
        keys = pl.concat(
            watching.arrays(self.store, cluster, ids["job_id"].unique())
            for (cluster,), ids in bare.group_by("cluster")
        )
        # A requeued task has a later submit instant; its array is the last one with its id before that.
        arrays = watching.jobs_named(self.store, keys).sort("submit")
        read = arrays.select("cluster", "job_id", "submit", pl.col("script").alias("of_array"))
        numbered = jobs.with_row_index("row").sort("submit")
        found = numbered.join_asof(read, on="submit", by=["cluster", "job_id"], check_sortedness=False).sort(
            "row"
        )
        inherited = pl.when(pl.col("task").is_not_null()).then(pl.coalesce("script", "of_array"))
        return found.with_columns(script=inherited.otherwise("script")).drop("row", "of_array")

    def _record(self, decision: Decision) -> list[Verdict]:
        """Store the decision with its messages; returns the verdicts that are new."""
        fresh = record(self.store, decision, self.sinks)
        for verdict in decision.verdicts:
            self._given[verdict.job] = self._given.get(verdict.job, 0) | stages.BITS.get(verdict.stage, 0)
        return fresh


def _with_causes(decision: Decision, causes: Sequence[Cause | None]) -> Decision:
    verdicts = [
        replace(verdict, cause=cause) for verdict, cause in zip(decision.verdicts, causes, strict=True)
    ]
    return replace(decision, verdicts=verdicts)
