"""Imports batches from a source into the store; an interrupted import is resumed."""

import time
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from tocsin.core.intake import Batch, JobSource, Rejects, valid_batches
from tocsin.store import jobs
from tocsin.store.database import Store
from tocsin.store.tables import imports

__all__ = ["ImportSummary", "furthest_position", "run_import"]


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """Totals of one run; after an interruption, of the remaining part."""

    read: int
    new: int
    updated: int
    unchanged: int
    rejects: Rejects
    seconds: float
    rows_per_second: float
    resumed_from: int = 0
    """Position from which an interrupted import was resumed; 0: from the start."""
    notes: list[str] = field(default_factory=list)


def run_import(
    store: Store,
    source: JobSource,
    *,
    lag: int = jobs.LAG,
    progress: Callable[[Batch], None] | None = None,
) -> ImportSummary:
    """Import a source. Importing it again changes nothing; an interrupted import is resumed."""
    began = time.monotonic()
    number, resume = _begin(store, source.identity)
    read, counts = 0, jobs.Counts()
    with closing(valid_batches(source, resume)) as batches:  # type: ignore[type-var]  # a generator
        for batch in batches:  # closing it also ends a command that is being read
            with store.writing(bulk=True) as connection:
                found = jobs.merge_in(connection, batch.jobs, lag=lag)
                _advance(connection, number, batch, found, source.rejects.counts)
            read, counts = read + batch.read, counts + found
            if progress is not None:
                progress(batch)
    _finish(store, number, source.rejects.counts)
    seconds = time.monotonic() - began
    return ImportSummary(
        read=read,
        new=counts.new,
        updated=counts.updated,
        unchanged=counts.unchanged,
        rejects=deepcopy(source.rejects),
        seconds=seconds,
        rows_per_second=read / seconds if seconds else 0.0,
        resumed_from=resume,
        notes=list(source.notes),
    )


def furthest_position(store: Store, prefix: str) -> int | None:
    """The furthest position of imports whose identity starts with `prefix`; None without any."""
    position = sa.select(sa.func.max(imports.c.position)).where(
        imports.c.identity.startswith(prefix, autoescape=True)
    )
    with store.reading() as connection:
        return connection.execute(position).scalar()


def _begin(store: Store, identity: str) -> tuple[int, int]:
    """Id and position of the source's unfinished import, or of a new one."""
    with store.writing() as connection:
        last = connection.execute(
            sa.select(imports.c.id, imports.c.position, imports.c.finished)
            .where(imports.c.identity == identity)
            .order_by(imports.c.id.desc())
            .limit(1)
        ).first()
        if last is not None and last.finished is None:
            return last.id, last.position
        row: dict[str, Any] = dict.fromkeys(("position", "read", "new", "updated", "unchanged"), 0)
        row |= {"identity": identity, "started": int(time.time()), "rejected": {}}
        number = connection.execute(sa.insert(imports).values(row)).inserted_primary_key
        assert number is not None, "an insert of one row has a key"
        return int(number[0]), 0


def _advance(
    connection: sa.Connection, number: int, batch: Batch, found: jobs.Counts, rejected: dict[str, int]
) -> None:
    connection.execute(
        sa.update(imports)
        .where(imports.c.id == number)
        .values(
            position=batch.position,
            read=imports.c.read + batch.read,
            new=imports.c.new + found.new,
            updated=imports.c.updated + found.updated,
            unchanged=imports.c.unchanged + found.unchanged,
            rejected=rejected,
        )
    )


def _finish(store: Store, number: int, rejected: dict[str, int]) -> None:
    with store.writing() as connection:
        connection.execute(
            sa.update(imports)
            .where(imports.c.id == number)
            .values(finished=int(time.time()), rejected=rejected)
        )
        # Refresh the query planner's statistics.
        connection.exec_driver_sql("PRAGMA optimize" if store.embedded else "ANALYZE jobs")
