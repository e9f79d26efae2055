"""One round of watching traces: read the newest samples, store them, score their windows, and raise alarms."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import polars as pl

from tocsin.core.channels import CPU_CHANNELS
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES, SCHEMA, WINDOWS, Samples, key_text
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.history.known_windows import SAME_AGE, KnownWindows
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store.database import Store
from tocsin.store.decisions import record
from tocsin.store.outbox import Subscriptions
from tocsin.store.verdicts import next_seq
from tocsin.store.windows import WindowStore
from tocsin.traces.cutting import cut, cut_counted
from tocsin.traces.fitted import FittedTraces
from tocsin.watch.trace_alarms import TraceAlarms
from tocsin.watch.trace_jobs import TraceJobs
from tocsin.watch.watcher import Round

__all__ = ["SampleReader", "Spacing", "TraceRounds"]

CATCH_UP = 600
"""Seconds: after a longer outage, older windows are skipped; the agents' buffers are no longer than this."""
SETTLE = 3
"""Seconds for the samples of an instant to arrive."""
OVERLAP = 30
"""Seconds that are read again, since one node may be later than the others."""
FUTURE = 5
"""Seconds by which the clock of a node may be ahead."""
LATE = 120
_ROUNDING = 0.01
_POSITION = "alarms"
"""The name under which the window store keeps up to when verdicts were given."""


class SampleReader(Protocol):
    """Sources of samples: Prometheus, or the agents."""

    problems: list[str]
    """Problems at the last reading, which was partial."""
    first_failed: int | None
    """The instant after which data is missing."""

    def __call__(self, since: int, until: int) -> Iterable[Samples]:
        """The samples in (since, until]; raises SourceError if no source answers."""
        ...


@dataclass(slots=True)
class Counts:
    """Counts since the start, for people."""

    samples: int = 0
    windows: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Windows and samples that could not be used, by reason."""


class Spacing(NamedTuple):
    """Window length and stride in points, and the seconds between two points."""

    window: int = 100
    stride: int = 10
    interval: int = 1


class TraceRounds:
    """Follows the traces of one cluster. Samples are stored before they are scored, and verdicts before the instant
    that was reached, so a round may be interrupted at any point and the next one completes it."""

    def __init__(
        self,
        cluster: str,
        read: SampleReader,
        kept: WindowStore,
        store: Store,
        judge: Judge,
        fitted: Callable[[], FittedTraces | None],
        *,
        jobs: TraceJobs,
        spacing: "Spacing",
        sinks: Subscriptions | None = None,
        past: pl.DataFrame | None = None,
    ) -> None:
        """`past`: jobs for detectors that read history."""
        self.cluster, self.store, self.judge = cluster, store, judge
        self.counts = Counts()
        self._read, self._kept, self._fitted, self._jobs = read, kept, fitted, jobs
        self._spacing, self._sinks = spacing, sinks
        self._length, self._stride = spacing.window * spacing.interval, spacing.stride * spacing.interval
        self._alarms = TraceAlarms(store)
        self._known = Ledger(windows=self._windows_of)
        if past is not None:
            self._known.learn(past)
        self._samples: Samples | None = None
        """Samples of the last few minutes."""
        self._scores: pl.DataFrame | None = None
        """Scores of the windows with which a run of unusual ones may begin."""
        self._model: FittedTraces | None = None
        self._reached = 0

    def step(self, now: int) -> Round:
        """Run one round. Raises SourceError, ClusterError or StoreError if nothing can be done; call it again later."""
        until = (now - SETTLE) // self._stride * self._stride
        samples = self._load(now)
        self._jobs.update(_raw_ids(samples), now)
        verdicts: list[Verdict] = []
        problems = [*self._read.problems, *(f"not used: {reason}" for reason in self.counts.dropped)]
        if self._jobs.problem:
            problems.append(f"jobs cannot be looked up: {self._jobs.problem}")
        if self._jobs.unknown:
            few = ", ".join(self._jobs.unknown[:3])
            problems.append(f"samples name jobs that are not in the store or the queue, such as {few}")
        fitted = self._fitted()
        if fitted is None:
            problems.append("no model is trained for traces yet; run `tocsin traces train`")
        elif until > self._reached:
            self._score(fitted, until)
            for at in range(self._reached + self._stride, until + 1, self._stride):
                verdicts += self._raise_alarms(fitted, at, now)
        if until > self._reached:
            self._kept.advance(self.cluster, _POSITION, until)
            self._reached = until
        self._shrink(until)
        # No cost: a slow Prometheus must not delay alarms, and Slurm is asked only about jobs that are new.
        return Round(at=now, handled=samples.cpus.height, cost=0.0, verdicts=verdicts, problems=problems)

    @property
    def _rows(self) -> int:
        """Seconds of windows that may hold a run of unusual ones."""
        fitted = self._fitted()
        return 2 * (fitted.in_a_row if fitted else 3) * self._stride

    # --- samples ---------------------------------------------------------------------------------

    def _load(self, now: int) -> Samples:
        """The samples of the last minutes and the newest ones, which are stored before anything else is done."""
        if self._samples is None:
            reached = self._kept.position(self.cluster, _POSITION) or 0
            grid = (now - SETTLE) // self._stride * self._stride
            self._reached = max(reached, grid - CATCH_UP) if reached else grid - self._stride
            since = self._reached - self._length - self._rows
            self._samples = _usable(self._kept.samples(self.cluster, since, now), now, self.counts)
        last = max((frame["at"].max() or 0 for frame in self._samples), default=0)
        first = max(int(last) - OVERLAP, self._reached - self._length - self._rows)  # type: ignore[arg-type]
        if self._read.first_failed is not None:
            first = min(first, self._read.first_failed)
        first = max(first, now - CATCH_UP)
        for part in self._read(first, now):
            usable = _usable(part, now, self.counts)
            appended = self._kept.append(self.cluster, usable)
            self.counts.samples += appended.added
            if appended.refused:
                self.counts.dropped["samples without a node, CPU or instant"] += appended.refused
            self._samples = _joined(self._samples, usable)
        return self._samples

    def _shrink(self, until: int) -> None:
        """Drop samples and scores that no later window needs."""
        if self._samples is None:
            return
        since = until - self._length - self._rows
        self._samples = Samples(*(frame.filter(pl.col("at") > since) for frame in self._samples))
        if self._scores is not None:
            self._scores = self._scores.filter(pl.col("at") > until - self._rows)
        self._alarms.forget(set(self._jobs.rows["job"]))

    # --- windows ---------------------------------------------------------------------------------

    def _score(self, fitted: FittedTraces, until: int) -> None:
        """Score the new windows; with another model, all with which a run may begin."""
        assert self._samples is not None, "it was loaded"
        if self._model is not fitted:
            self._model, self._scores = fitted, None
        since = self._reached if self._scores is not None else self._reached - self._rows
        recent = Samples(*(f.filter(pl.col("at") > since - self._length) for f in self._samples))
        windows = self._cut(recent, until).filter(pl.col("at") > since, pl.col("job").is_not_null())
        self.counts.windows += windows.height
        fresh = fitted.scores(windows, self._jobs.rows.select("job", "user", "name")).drop("in_a_row")
        self._scores = fresh if self._scores is None else pl.concat([self._scores, fresh])

    def _cut(self, samples: Samples, until: int) -> pl.DataFrame:
        found = cut_counted(
            samples.cpus,
            samples.jobs,
            length=self._spacing.window,
            stride=self._spacing.stride,
            interval=self._spacing.interval,
            until=until,
            keys=self._jobs.keys,
        )
        self.counts.dropped.update({f"windows: {reason}": n for reason, n in found.dropped.items()})
        if found.invalid:
            self.counts.dropped["samples with impossible values"] += found.invalid
        return found.windows

    def _windows_of(self, jobs: pl.DataFrame, until: int) -> pl.DataFrame:
        """The windows of some jobs and of siblings of the same age, cut from the samples."""
        if self._samples is None:
            return WINDOWS.to_frame()
        everyone = [jobs.select(SCHEMA.names()).with_columns(key_text())]
        parts = [self._samples]
        if jobs.height == 1:
            siblings = self._jobs.siblings(jobs)
            everyone.append(siblings.select(everyone[0].columns))
            parts += self._samples_of(siblings, until - jobs["start"][0], until)
        rows = pl.concat(everyone)
        raw = rows["raw_id"].cast(pl.String)
        nodes = {node for part in parts for node in _nodes_of(part, raw)}
        samples = Samples(
            *(pl.concat(f).filter(pl.col("node").is_in(list(nodes))) for f in zip(*parts, strict=True))
        )
        keys = rows.select(
            raw=raw, node=pl.lit(None, pl.String), start="start", end=pl.lit(None, pl.Int64), key="job"
        )
        found = cut(
            samples.cpus,
            samples.jobs,
            length=self._spacing.window,
            stride=self._spacing.stride,
            interval=self._spacing.interval,
            until=until,
            keys=keys,
        )
        return KnownWindows(found.filter(pl.col("job").is_not_null()), rows)(jobs, until)

    def _samples_of(self, siblings: pl.DataFrame, age: int, until: int) -> list[Samples]:
        """Samples of these tasks from that age on."""
        found = []
        for start in siblings["start"].unique().sort():
            since, last = start + age - SAME_AGE - self._length, min(start + age + SAME_AGE, until)
            if last > since:
                found.append(self._kept.samples(self.cluster, since, last))
        return found

    # --- verdicts --------------------------------------------------------------------------------

    def _raise_alarms(self, fitted: FittedTraces, at: int, now: int) -> list[Verdict]:
        """Give the verdicts of one instant: on jobs whose alarm begins, changes or ends."""
        assert self._scores is not None, "windows were scored"
        recent = self._scores.filter(pl.col("at").is_between(at - self._rows, at))
        seen = recent.filter(pl.col("at") == at)["job"].unique().to_list()
        self._alarms.load(seen)
        unusual = set(
            recent.filter(pl.col("unusual"), pl.col("at") > at - fitted.in_a_row * self._stride)["job"]
        )
        over = [job for job in self._alarms.alarmed() if job in seen and job not in unusual]
        asked = [
            job
            for job in (*fitted.candidates(recent), *over)
            if job in seen and not self._alarms.was_judged(job, at)
        ]
        jobs = self._jobs.of(dict.fromkeys(asked))
        if jobs.is_empty():
            return []
        self._known.now = at
        decision = self.judge.decide(
            jobs.select(SCHEMA.names()),
            Stage.RUNNING,
            known=self._known,
            at=now,
            seq=next_seq(self.store, jobs["job"].to_list(), Stage.RUNNING),
            late=[now - at > LATE] * jobs.height,
            known_until=[at] * jobs.height,
        )
        decision = replace(decision, verdicts=self._alarms.news(decision.verdicts, at))
        given = record(self.store, decision, self._sinks) if decision.verdicts else []
        self._alarms.given(given)
        return given


def _raw_ids(samples: Samples) -> list[str]:
    return pl.concat(frame["job"] for frame in samples).drop_nulls().unique().sort().to_list()


def _nodes_of(samples: Samples, raw: pl.Series) -> Sequence[str]:
    mine = pl.col("job").is_in(raw.implode())
    return pl.concat(frame.filter(mine)["node"] for frame in samples).unique().to_list()


def _joined(samples: Samples, more: Samples) -> Samples:
    """The later sample of a second replaces the earlier one."""
    places = (("node", "cpu", "at"), ("node", "job", "at"))
    return Samples(
        *(
            pl.concat([old, new.select(old.columns)]).unique(place, keep="last", maintain_order=True)
            for old, new, place in zip(samples, more, places, strict=True)
        )
    )


def _usable(samples: Samples, now: int, counts: Counts) -> Samples:
    """Without samples from a clock that is ahead and without impossible values: they must not replace good ones."""
    cpus = samples.cpus.select(CPU_SAMPLES.names()).cast(CPU_SAMPLES)
    jobs = samples.jobs.select(JOB_SAMPLES.names()).cast(JOB_SAMPLES)
    possible = pl.all_horizontal(pl.col(name).is_between(-_ROUNDING, 1 + _ROUNDING) for name in CPU_CHANNELS)
    good = cpus.filter(possible)
    if good.height < cpus.height:
        counts.dropped["samples with impossible values"] += cpus.height - good.height
    found = Samples(*(frame.filter(pl.col("at") <= now + FUTURE) for frame in (good, jobs)))
    if ahead := good.height + jobs.height - sum(frame.height for frame in found):
        counts.dropped["samples from the future (is a node's clock ahead?)"] += ahead
    return found
