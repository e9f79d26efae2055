"""The jobs behind the raw ids in samples: from the store, or from the queue if the store does not have them yet."""

from collections.abc import Callable, Iterable

import polars as pl

from tocsin.core.errors import ClusterError
from tocsin.core.frames import SCHEMA, key_text
from tocsin.store import watching
from tocsin.store.database import Store
from tocsin.store.jobs import upsert
from tocsin.watch.observations import from_queue

__all__ = ["TraceJobs"]

REFRESH = 60
"""Seconds after which ends and requeues are looked up again."""
LATELY = 3600
"""Seconds after the end of a job in which its samples may still be examined."""
_MOST_SIBLINGS = 20


class TraceJobs:
    """A cache of the store. `queue` asks the cluster; None if there is no cluster to ask."""

    def __init__(self, store: Store, cluster: str, queue: Callable[[], pl.DataFrame] | None) -> None:
        self._store, self._cluster, self._queue = store, cluster, queue
        self.rows = pl.DataFrame(schema={**SCHEMA, "job": pl.String()})
        """All fields of the jobs that run now or ran lately, and their keys as text."""
        self._refreshed = 0
        self.problem: str | None = None
        """Why the queue could not be read."""
        self.unknown: list[str] = []
        """Raw ids in samples that are neither in the store nor in the queue."""

    def update(self, raw_ids: Iterable[str], now: int) -> None:
        """Look up these ids: new ones at once, and all of them once a minute."""
        wanted = _numbers(raw_ids)
        missing = wanted - set(self._running()["raw_id"])
        if not missing and now - self._refreshed < REFRESH:
            return
        self._refreshed = now
        self._load(wanted, now - LATELY)
        self.problem = None
        if (missing := wanted - set(self._running()["raw_id"])) and self._queue:
            try:
                dump = self._queue()
            except ClusterError as error:
                self.problem = str(error)
            else:
                found = from_queue(dump, began=0).filter(pl.col("raw_id").is_in(list(missing)))
                upsert(self._store, found.select(SCHEMA.names()))
                self._load(wanted, now - LATELY)
        self.unknown = sorted(map(str, wanted - set(self._running()["raw_id"])))

    def look_up(self, raw_ids: Iterable[str], *, since: int) -> None:
        """The jobs with these ids that had not ended by an instant, from the store alone."""
        self._load(_numbers(raw_ids), since)

    @property
    def keys(self) -> pl.DataFrame:
        """Which job a raw id was, and when, as `traces.cutting.KEYS`."""
        return self._running().select(
            raw=pl.col("raw_id").cast(pl.String),
            node=pl.lit(None, pl.String),
            start="start",
            end="end",
            key="job",
        )

    def of(self, keys: Iterable[str]) -> pl.DataFrame:
        """The jobs with these keys, in the order of the keys."""
        return pl.DataFrame({"job": list(keys)}, schema={"job": pl.String}).join(
            self.rows, on="job", how="inner", maintain_order="left"
        )

    def siblings(self, job: pl.DataFrame) -> pl.DataFrame:
        """The tasks of the same array that started last; none for a job that is not a task."""
        if job["task"][0] is None:
            return self.rows.clear()
        found = watching.tasks(self._store, self._cluster, job["job_id"][0])
        started = found.filter(pl.col("start").is_not_null(), pl.col("task") != job["task"][0])
        return started.sort("start").tail(_MOST_SIBLINGS).with_columns(key_text())

    def _running(self) -> pl.DataFrame:
        """Without jobs that are still pending according to the store."""
        return self.rows.filter(pl.col("start").is_not_null())

    def _load(self, raw_ids: Iterable[int], since: int) -> None:
        found = watching.with_raw_ids(self._store, self._cluster, raw_ids, since)
        self.rows = found.with_columns(key_text())


def _numbers(raw_ids: Iterable[str]) -> set[int]:
    return {int(raw) for raw in raw_ids if raw.isdecimal() and len(raw) < 19}
