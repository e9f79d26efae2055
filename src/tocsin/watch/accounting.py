"""Reads accounting in a thread of its own, so that verdicts on the queue do not wait for slurmdbd."""

import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from math import inf

import polars as pl

from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.fields import KEY
from tocsin.core.ports import Cluster
from tocsin.store.watching import Progress
from tocsin.watch.observations import NOTHING, from_accounting

__all__ = ["COST_SHARE", "OVERLAP", "SPAN", "Accounting", "Answer"]

COST_SHARE = 20
"""A question to Slurm is repeated after this many times the duration of its answer, up to a bound."""
OVERLAP = 300  # seconds read again, since accounting may arrive late
EVERY = 60  # seconds, at least: some jobs come and go between two readings of the queue
LONGEST_PAUSE = 180  # seconds, after a slow answer
SPAN = 86400  # seconds of accounting in one answer: after a long outage, the watch catches up day by day
SILENT = 60
"""Seconds without an answer after which it is reported."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of accounting."""

    asked: int
    until: int
    """It holds all jobs that ended up to then, except for records that were still on their way."""
    ended: pl.DataFrame = field(default_factory=NOTHING.clear)
    problem: str = ""
    """Why it could not be read."""
    cost: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether it covers everything up to the moment of the question."""
        return self.until == self.asked


class Accounting:
    """Asks for the jobs that ended, one question at a time."""

    def __init__(self, cluster: Cluster, *, patience: float = inf) -> None:
        """`patience`: seconds for which `read` waits for an answer; if infinite, it reads without a thread."""
        self.patience = patience
        self.problems: list[str] = []
        """Problems to report now."""
        self._cluster = cluster
        self._asked_at = 0
        self._answered_at = 0
        self._not_before = 0.0
        self._pending: Future[Answer] | None = None

    def read(self, progress: Progress, now: int, *, wanted: bool, patience: float = 0.0) -> Answer | None:
        """The jobs that ended, known from now on; None if there is no answer yet. `patience` may extend the wait.

        Accounting is asked if it is `wanted`, and regularly in any case.
        """
        if self._pending is None:
            due = wanted or now - self._answered_at >= EVERY
            if not due or now < self._not_before:
                return None
            self._ask(progress, now)
        assert self._pending, "it was just asked"
        seconds = max(patience, self.patience)
        wait([self._pending], None if seconds == inf else seconds)
        if not self._pending.done():
            if now - self._asked_at > SILENT:
                self.problems = [f"accounting has not answered for more than {SILENT} s; is slurmdbd up?"]
            return None
        answered, self._pending = self._pending, None
        return self._accepted(answered.result(), now)

    def _accepted(self, answer: Answer, now: int) -> Answer | None:
        pause = COST_SHARE * answer.cost if answer.problem or answer.complete else 0.0
        self._not_before = now + min(pause, LONGEST_PAUSE)
        slow = f"accounting is slow; it is read every {LONGEST_PAUSE} s" if pause >= LONGEST_PAUSE else ""
        self.problems = [answer.problem or slow] if answer.problem or slow else []
        if answer.problem:
            return None
        self._answered_at = answer.asked
        known = pl.lit(now, dtype=pl.Int64).alias("known_at")
        return Answer(answer.asked, answer.until, answer.ended.with_columns(known))

    def _ask(self, progress: Progress, now: int) -> None:
        self._asked_at, self._pending = now, Future()
        if self.patience == inf:
            self._answer(self._pending, progress, now)
        else:
            asked = (self._pending, progress, now)
            threading.Thread(target=self._answer, args=asked, name="accounting", daemon=True).start()

    def _answer(self, pending: "Future[Answer]", progress: Progress, now: int) -> None:
        try:
            pending.set_result(self._read(progress, now))
        except Exception as error:  # raised again in the thread that takes the answer
            pending.set_exception(error)

    def _read(self, progress: Progress, now: int) -> Answer:
        until, waited, problem = min(now, progress.reached + SPAN), self._cluster.waited(), ""
        frames = [NOTHING]
        try:
            frames += (
                from_accounting(frame, now=now)
                for frame in self._cluster.accounting(progress.reached - OVERLAP, until + 1)
            )
        except (ClusterError, SourceError) as error:
            problem = str(error)
        ended = pl.concat(frames).unique(KEY, keep="last", maintain_order=True)
        return Answer(now, until, ended, problem, self._cluster.waited() - waited)
