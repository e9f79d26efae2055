"""A watcher on a store, clusters and stores that fail on purpose, and the verdicts that must result."""

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
    """Stands for SIGKILL; nothing in the program may catch it."""


@dataclass(frozen=True, slots=True)
class KillableStore(Store):
    """A store that can kill the process before a write, and after its commit."""

    deaths: list[int] = field(default_factory=list)
    """The first number is counted down at each such point; at zero, the process is killed."""

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


class FlakyCluster(DemoCluster):
    """The demo cluster, with a slurmctld and a slurmdbd that can be down."""

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
class FakeCluster:
    """A cluster with the jobs that a test puts into it."""

    name: str = "lab"
    queued: list[dict[str, Any]] = field(default_factory=list)
    accounted: list[dict[str, Any]] = field(default_factory=list)
    scripts: dict[int, str] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    slow: float = 0.0
    """Seconds for which it has kept us waiting."""

    def waited(self) -> float:
        return self.slow

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
        raise AssertionError("watching must not hold jobs")

    def release(self, key: JobKey) -> None:
        raise AssertionError("watching must not release jobs")


NOON = START + 12 * 3600


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    """Jobs of the cluster `lab`; a pending job unless a row says otherwise."""
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
    """A new watcher on this store, as after a restart."""
    ledger = Ledger()
    ledger.learn(load(store, Filter(clusters=[cluster.name])))
    return Watcher(cluster, store, judge or Judge({}), ledger, seconds=lambda: 0.0, **more)


def rows(store: Store, query: str) -> list[tuple[Any, ...]]:
    """The rows of an SQL query."""
    with store.reading() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def stored_verdicts(store: Store) -> list[tuple[str, str]]:
    """(job, stage) of every stored verdict."""
    return sorted((str(job), str(stage)) for job, stage in rows(store, "SELECT job, stage FROM verdicts"))


def expected_verdicts(cluster: DemoCluster, now: int) -> list[tuple[str, str]]:
    """The verdicts due when the demo is watched from its first instant on, computed from its own records."""
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
