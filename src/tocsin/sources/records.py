"""Numbers, checks and deduplicates the records of one file, and passes them on in bounded batches."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.frames import conform
from tocsin.core.intake import Batch, Rejects
from tocsin.core.units import MAX_INSTANT
from tocsin.sources.lines import Block

__all__ = [
    "BACKWARDS",
    "BAD",
    "EXAMPLE",
    "LINE",
    "NO_CLUSTER",
    "NO_ID",
    "NO_NUMBER",
    "NO_SUBMIT",
    "NO_TIME",
    "RECORD",
    "REPEATED",
    "WRONG_COLUMNS",
    "Records",
    "only_cluster",
    "reject_incomplete",
]

LINE, RECORD = "_line", "_record"
BAD, EXAMPLE = "_bad", "_example"  # flag of a time that cannot be read, and its text
ROWS = 50_000

WRONG_COLUMNS = "wrong number of columns"
NO_NUMBER = "text in a number field"
NO_ID = "no job id"
NO_SUBMIT = "no submit time"
NO_TIME = "time that cannot be read"
BACKWARDS = "times that run backwards"
REPEATED = "job seen before in this file"
INCOMPLETE = "not complete in slurmdbd yet"
NO_STATE = "no state"
NO_CLUSTER = "no cluster name"


def reject_incomplete(jobs: pl.DataFrame, rejects: Rejects) -> pl.DataFrame:
    """Reject records that slurmdbd has not completed yet.

    For some seconds after its end, a job may lack partition and request, and an array may look like a plain job, so that
    its key would be wrong (seen on 22.05). The next read finds it complete.
    """
    incomplete = pl.col("partition").is_null()
    rejects.add(INCOMPLETE, jobs.filter(incomplete)[RECORD])
    return jobs.filter(~incomplete)


def only_cluster(jobs: pl.DataFrame, cluster: str | None, records: "Records") -> pl.DataFrame:
    """With -M, only this cluster's jobs; Slurm writes cluster names in lower case."""
    if cluster is None:
        return jobs
    other = pl.col("cluster").str.to_lowercase() != cluster.lower()
    example = pl.format('Cluster "{}"', pl.col("cluster"))
    return records.reject_where(jobs, other, f'not of cluster "{cluster}"', example)


class Records:
    """Records of one pass over a file. Rows are frames with the columns LINE and RECORD (both from 1).

    Records up to `resume` were stored by an earlier run: they are read again for their keys, but not counted.
    """

    def __init__(self, rejects: Rejects, *, resume: int = 0) -> None:
        self.rejects = rejects
        self.resume = resume
        self.read = 0
        self._given = resume
        self._seen: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

    def number(self, lines: npt.NDArray[np.int64]) -> pl.DataFrame:
        """Number the next records, one per line."""
        first = self.read + 1
        self.read += len(lines)
        return pl.DataFrame({LINE: lines, RECORD: np.arange(first, self.read + 1)})

    def reject_lost(self, block: Block) -> None:
        """Number and reject the lines of a block that could not be read."""
        for reason, lines in block.lost.items():
            self.reject(self.number(np.array(lines, np.int64)), reason)

    def reject(self, rows: pl.DataFrame, reason: str, example: pl.Expr | None = None) -> None:
        """Count these rows as rejected; `example` shows the cause in the first of them."""
        rows = rows.filter(pl.col(RECORD) > self.resume)
        shown = rows.head(1).select(example)[0, 0] if example is not None and rows.height else None
        self.rejects.add(reason, rows[LINE].to_list(), shown)

    def reject_where(
        self, rows: pl.DataFrame, bad: pl.Expr, reason: str, example: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Reject the bad rows and return the others."""
        found = rows.select(bad.fill_null(False).alias("bad"))["bad"]
        if not found.any():
            return rows
        self.reject(rows.filter(found), reason, example)
        return rows.filter(~found)

    def plausible(self, jobs: pl.DataFrame, unreadable_id: pl.Expr | None = None) -> pl.DataFrame:
        """Reject jobs without an identity, with times that run backwards, and repeated ones."""
        jobs = self.reject_where(
            jobs, pl.col("job_id").is_null() | (pl.col("job_id") < 0), NO_ID, unreadable_id
        )
        if BAD in jobs.columns:
            jobs = self.reject_where(jobs, pl.col(BAD), NO_TIME, pl.col(EXAMPLE).str.slice(0, 120))
        jobs = self.reject_where(jobs, pl.col("submit").is_null(), NO_SUBMIT)
        jobs = self.reject_where(jobs, pl.col("cluster").is_null(), NO_CLUSTER)
        start, end, submit = pl.col("start"), pl.col("end"), pl.col("submit")
        jobs = self.reject_where(
            jobs, (end < start) | (start < submit) | (end < submit) | (submit < 0), BACKWARDS, _times()
        )
        return self.latest(jobs)

    def latest(self, jobs: pl.DataFrame) -> pl.DataFrame:
        """Reject repeated records and keep one record per job and block: one that has ended, or else the last."""
        jobs = self.without_repeats(jobs, [*KEY, "state", "end"])
        if not jobs.select(pl.struct(KEY).is_duplicated().any()).item():
            return jobs
        ended = pl.col("outcome").is_not_null()
        stale = ~pl.struct(*KEY, ended.alias("ended")).is_last_distinct() | (~ended & ended.any().over(KEY))
        return self.reject_where(jobs, stale, REPEATED)

    def without_repeats(self, rows: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        """Reject rows whose values in these columns occurred before (compared by a 64-bit hash)."""
        hashes = rows.select(columns).hash_rows(seed=17).to_numpy()
        unique, first = np.unique(hashes, return_index=True)
        place = np.searchsorted(self._seen, unique)
        known = np.zeros(len(unique), bool)
        inside = place < len(self._seen)
        known[inside] = self._seen[place[inside]] == unique[inside]
        new = np.zeros(len(hashes), bool)
        new[first[~known]] = True
        if len(unique):
            self._seen = np.insert(self._seen, place[~known], unique[~known])
        if new.all():
            return rows
        self.reject(rows.filter(~pl.Series(new)), REPEATED)
        return rows.filter(pl.Series(new))

    def batches(self, jobs: pl.DataFrame, *, done: int, upto: int | None = None) -> Iterator[Batch]:
        """Rows in batches; the position after the last one is `upto` (default: all records read)."""
        end = self.read if upto is None else upto
        rows = jobs.filter(pl.col(RECORD) > self.resume)
        for start in range(0, rows.height, ROWS):
            part = rows.slice(start, ROWS)
            last = start + ROWS >= rows.height
            position = max(end, self._given) if last else int(part[RECORD][-1])
            yield self._batch(part, position, done)
        if not rows.height and end > self._given:
            yield self._batch(rows, end, done)

    def _batch(self, rows: pl.DataFrame, position: int, done: int) -> Batch:
        read, self._given = position - self._given, position
        lines = rows[LINE].to_list() if rows.height else []
        return Batch(conform(rows), read=read, position=position, done=done, lines=lines)


def _times() -> pl.Expr:
    """The times of a job in UTC."""
    times = [
        pl.concat_str(
            pl.lit(f"{name.title()} "),
            pl.from_epoch(pl.when(pl.col(name).is_between(0, MAX_INSTANT)).then(name), "s").dt.strftime(
                "%Y-%m-%dT%H:%M:%SZ"
            ),
        )
        for name in ("submit", "start", "end")
    ]
    return pl.concat_str(times, separator=", ", ignore_nulls=True)
