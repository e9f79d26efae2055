"""The docket: which verdicts were given, and the giving of those that are due, each once."""

from collections.abc import Callable, Iterable, Sequence

import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.frames import reached_at
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.verdicts import StoredVerdict, record
from tocsin.watch import stages
from tocsin.watch.recall import Recall

__all__ = ["Docket"]

CHUNK = 1000  # verdicts in one transaction


class Docket:
    """What it remembers is a cache of the store: of jobs that are about, which stages have their verdict."""

    def __init__(
        self,
        store: Store,
        judge: Judge,
        ledger: Ledger,
        *,
        script: Callable[[str], str | None],
        sinks: Sequence[str] = (),
    ) -> None:
        self.store = store
        self.judge = judge
        self.ledger = ledger
        self.sinks = sinks
        self._recall = Recall(ledger, script)
        self._given: dict[str, int] = {}

    def ask(self, jobs: Iterable[str]) -> None:
        """Have the verdicts of these jobs at hand; those that are not yet are asked for together."""
        unknown = [job for job in jobs if job not in self._given]
        if unknown:
            found = stages.bits_of(watching.given(self.store, unknown))
            self._given.update((job, found.get(job, 0)) for job in unknown)

    def given(self, rows: pl.DataFrame) -> pl.Series:
        """The bits of the stages that have a verdict, for each row."""
        return pl.Series("given", [self._given.get(job, 0) for job in rows["job"].to_list()], dtype=pl.Int64)

    def forget(self, present: set[str]) -> None:
        """Keep nothing of jobs that are not about any more."""
        self._given = {job: bits for job, bits in self._given.items() if job in present}

    def give(self, due: pl.DataFrame, fresh: Sequence[pl.DataFrame], now: int) -> list[Verdict]:
        """The verdicts that are due, made from the jobs as the store has them, stored as they are made.

        `fresh` are the keys of jobs of which something new was stored: the ledger hears of them first.
        """
        if due.is_empty() and not fresh:
            return []
        jobs = watching.jobs_named(self.store, pl.concat([due.select(KEY), *fresh]))
        # An array that waits is no job to count: its tasks are, as they start.
        waiting = pl.col("array").is_not_null() & pl.col("outcome").is_null()
        self.ledger.learn(jobs.filter(~waiting))
        jobs = jobs.join(due.select(*KEY, "due", "over"), on=KEY, nulls_equal=True)
        jobs = jobs.sort("submit", "job_id", "task", nulls_last=False)
        by_stage = {
            stage: jobs.filter(stages.with_stage(stage) & reached_at(stage).is_not_null())
            for stage in stages.BITS
        }
        by_stage[Stage.END] = self._with_scripts_of_arrays(by_stage[Stage.END])
        counted = self._recall.prepare(by_stage)
        told: list[Verdict] = []
        for stage, asked in by_stage.items():
            for first in range(0, asked.height, CHUNK):
                part = asked.slice(first, CHUNK)
                verdicts = self.judge.assess(
                    part.drop("due", "over"),
                    stage,
                    past=self._recall,
                    at=now,
                    late=part.select(stages.late(stage, now)).to_series().to_list(),
                    known_until=counted[stage][first : first + CHUNK],
                )
                told += self._record(part, verdicts)
        return told

    def _with_scripts_of_arrays(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Tasks with the script of their array, which alone was read; what it says is held beside what they did."""
        bare = jobs.filter(pl.col("task").is_not_null() & pl.col("script").is_null())
        if bare.is_empty():
            return jobs
        keys = pl.concat(
            watching.arrays(self.store, cluster, ids["job_id"].unique())
            for (cluster,), ids in bare.group_by("cluster")
        )
        # A task that was put back has a later submit instant; its array is the last one of its id before that.
        arrays = watching.jobs_named(self.store, keys).sort("submit")
        read = arrays.select("cluster", "job_id", "submit", pl.col("script").alias("of_array"))
        numbered = jobs.with_row_index("row").sort("submit")
        found = numbered.join_asof(read, on="submit", by=["cluster", "job_id"]).sort("row")
        inherited = pl.when(pl.col("task").is_not_null()).then(pl.coalesce("script", "of_array"))
        return found.with_columns(script=inherited.otherwise("script")).drop("row", "of_array")

    def _record(self, jobs: pl.DataFrame, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Store them with their messages; returned are those that nobody gave before."""
        keys = [JobKey(*key) for key in jobs.select(KEY).iter_rows()]
        by_key = dict(zip(keys, verdicts, strict=True))
        fresh = record(
            self.store,
            [
                StoredVerdict(
                    job=key,
                    stage=verdict.stage,
                    seq=verdict.seq,
                    at=verdict.at,
                    level=str(verdict.level),
                    late=verdict.late,
                    document=verdict.to_json(),
                )
                for key, verdict in by_key.items()
            ],
            self.sinks,
        )
        for verdict in verdicts:
            self._given[verdict.job] = self._given.get(verdict.job, 0) | stages.BITS[verdict.stage]
        return [by_key[one.job] for one in fresh]
