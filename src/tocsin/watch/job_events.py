"""Messages about changes of jobs, for sinks that take job events."""

import hashlib
import json
from collections.abc import Callable

import polars as pl
import sqlalchemy as sa

from tocsin.core.frames import key_text
from tocsin.sources.job_events import event_document
from tocsin.store.outbox import Subscriptions, drop_oldest, put

__all__ = ["JobEvents"]

KIND = "job"


class JobEvents:
    """Puts a message into the outbox for each new or changed job, in the same transaction as the job."""

    def __init__(self, sinks: Subscriptions, script: Callable[[str], str | None] | None = None) -> None:
        """`script` reads a script by its reference; without it, events carry only the reference."""
        self._sinks = {name: taken for name, taken in sinks.items() if KIND in taken.kinds}
        self._script = script

    def put(self, connection: sa.Connection, jobs: pl.DataFrame) -> None:
        if not self._sinks or jobs.is_empty():
            return
        for row in jobs.with_columns(key_text()).iter_rows(named=True):
            text = self._script(row["script"]) if self._script and row["script"] else None
            document = event_document(row, text)
            digest = hashlib.sha256(json.dumps(document).encode()).hexdigest()[:16]
            put(
                connection, self._sinks, kind=KIND, reference=f"{document['job']}/{digest}", document=document
            )
        drop_oldest(connection, self._sinks)
