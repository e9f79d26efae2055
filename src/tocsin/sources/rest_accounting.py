"""Reads accounting through slurmrestd, one time window after another."""

from collections.abc import Iterator

import polars as pl

from tocsin.core.fields import KEY
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.json_replies import latest
from tocsin.sources.records import RECORD, reject_incomplete
from tocsin.sources.rest import SlurmRest

__all__ = ["RestAccounting"]

DAY, HOUR = 86_400, 3_600
_MANY, _FEW = 20_000, 5_000  # 24.11 needs 8.6 KB a job, so that 20,000 are 170 MiB


class RestAccounting:
    """The jobs alive in [since, until), in windows of a day or, with very many jobs, shorter."""

    def __init__(self, rest: SlurmRest, since: int, until: int, *, cluster: str | None = None) -> None:
        self.rest, self.since, self.until, self.cluster = rest, since, until, cluster
        self.identity = f"rest:{rest.url}:{cluster}:{since}:{until}"
        self.total: int | None = max(0, until - since)
        self.rejects = Rejects()
        self.notes = rest.notes

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        start, length, first = max(self.since, resume), DAY, 1
        over = pl.DataFrame(schema=dict.fromkeys(KEY, pl.Null))
        while start < self.until:
            end = min(start + length, self.until)
            bad = self.rejects.total
            found = self.rest.accounting(start, end, rejects=self.rejects, first=first, cluster=self.cluster)
            count = found.height + self.rejects.total - bad
            first += count
            jobs = reject_incomplete(latest(found), self.rejects).drop(RECORD)
            # A job is in every window of its life; once its end was returned, it is not returned again.
            fresh = jobs.join(over, on=KEY, how="anti", nulls_equal=True) if over.height else jobs
            over = jobs.filter(pl.col("outcome").is_not_null() & (pl.col("end") >= end)).select(KEY)
            read = fresh.height + self.rejects.total - bad
            yield Batch(fresh, read=read, position=end, done=end - self.since)
            length = (
                max(length // 2, HOUR) if count > _MANY else min(length * 2, DAY) if count < _FEW else length
            )
            start = end
