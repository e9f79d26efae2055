"""What the tests of the watch share: a watcher on a store, clusters that misbehave, and a reckoning of our own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.errors import ClusterError
from tocsin.core.frames import SCHEMA
from tocsin.core.ids import JobKey
from tocsin.core.machine import Machine
from tocsin.demo.cluster import START, DemoCluster
from tocsin.history.ledger import Ledger
from tocsin.judge.judge import Judge
from tocsin.store.database import Store
from tocsin.store.jobs import Filter, load
from tocsin.watch.watcher import Watcher

MORNING = START + 9 * 3600


class Killed(BaseException):
    """As SIGKILL: nothing in the program may catch it."""


@dataclass(frozen=True, slots=True)
class Mortal(Store):
    """A store during whose writes the process may be killed: before each, and after each is committed."""

    deaths: list[int] = field(default_factory=list)
    """Counted down at every chance to die; a zero kills."""

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        self._chance()
        with Store.writing(self) as connection:
            yield connection
        self._chance()

    def _chance(self) -> None:
        if self.deaths:
            self.deaths[0] -= 1
            if self.deaths[0] < 0:
                self.deaths.pop(0)
                raise Killed


class Moody(DemoCluster):
    """The demo, with a slurmctld and a slurmdbd that may be down."""

    controller = True
    accounts = True

    def queue(self) -> pl.DataFrame:
        if not self.controller:
            raise ClusterError("slurmctld does not answer")
        return super().queue()

    def accounting(self, since: int, until: int) -> Iterator[pl.DataFrame]:
        if not self.accounts:
            raise ClusterError("slurmdbd does not answer")
        return super().accounting(since, until)


@dataclass
class Told:
    """A cluster that tells what a test puts into it."""

    name: str = "lab"
    queued: list[dict[str, Any]] = field(default_factory=list)
    accounted: list[dict[str, Any]] = field(default_factory=list)
    scripts: dict[int, str] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def queue(self) -> pl.DataFrame:
        return frame(*self.queued)

    def accounting(self, since: int, until: int) -> Iterator[pl.DataFrame]:
        alive = [
            row
            for row in self.accounted
            if row.get("submit", NOON) < until and (row.get("end") is None or row["end"] >= since)
        ]
        yield frame(*alive)

    def machine(self) -> Machine:
        return Machine(cluster=self.name)

    def script(self, key: JobKey) -> str | None:
        self.asked.append(key.job_id)
        return self.scripts.get(key.job_id)

    def hold(self, key: JobKey, reason: str) -> None:
        raise AssertionError("a watch holds nothing")

    def release(self, key: JobKey) -> None:
        raise AssertionError("a watch releases nothing")


NOON = START + 12 * 3600


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """Jobs of the cluster `lab`; what a row does not say is a plain one that waits."""
    plain = {
        "cluster": "lab",
        "job_id": 1,
        "submit": NOON,
        "state": "PENDING",
        "partition": "main",
        "user": "ann",
        "source": "squeue",
        "request_final": False,
    }
    full = [{**dict.fromkeys(SCHEMA), **plain, **row} for row in rows]
    return pl.DataFrame(full, schema=SCHEMA, orient="row")


def running(start: int, **more: Any) -> dict[str, Any]:
    return {"state": "RUNNING", "start": start, "node_list": "n1", **more}


def ended(start: int | None, end: int, state: str = "COMPLETED", **more: Any) -> dict[str, Any]:
    return {"state": state, "outcome": state.lower(), "start": start, "end": end, **more}


def watcher(cluster: Any, store: Store, judge: Judge | None = None, **more: Any) -> Watcher:
    """A new process on this store, as far as memory goes."""
    ledger = Ledger()
    ledger.learn(load(store, Filter(clusters=[cluster.name])))
    return Watcher(cluster, store, judge or Judge({}), ledger, seconds=lambda: 0.0, **more)


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    """What plain SQL finds."""
    with store.reading() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def given(store: Store) -> list[tuple[str, str]]:
    """(job, stage) of every verdict, one for each row."""
    return sorted((str(job), str(stage)) for job, stage in rows(store, "SELECT job, stage FROM verdicts"))


def reckoned(cluster: DemoCluster, now: int) -> list[tuple[str, str]]:
    """The verdicts that there must be when the demo was watched from its first instant on: from its own records."""
    expected = []
    for record in cluster._simulation.records.values():
        job, array = str(record.key(cluster.name)), bool(record.request.tasks) and record.task is None
        if record.task is None:
            expected.append((job, "submit"))
        if record.start is not None and not array:
            expected.append((job, "start"))
            if record.start + 120 <= now and (record.end is None or record.end >= record.start + 120):
                expected.append((job, "early"))
        if record.end is not None:
            expected.append((job, "end"))
    return sorted(expected)
