"""The audit trail: who did what, when and to which job. Rows are only added."""

from dataclasses import dataclass, field
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.ids import JobKey, parse_key
from tocsin.store import bulk
from tocsin.store.database import Store
from tocsin.store.tables import audit

__all__ = ["Entry", "append", "of_jobs", "read", "write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    at: int
    who: str
    what: str
    job: JobKey | None = None
    detail: dict[str, Any] = field(default_factory=dict)


def append(store: Store, entry: Entry) -> None:
    with store.writing() as connection:
        write(connection, entry)


def write(connection: sa.Connection, entry: Entry) -> None:
    job = None if entry.job is None else str(entry.job)
    connection.execute(
        sa.insert(audit).values(at=entry.at, who=entry.who, what=entry.what, job=job, detail=entry.detail)
    )


def read(store: Store, *, job: JobKey | None = None, limit: int = 1000) -> list[Entry]:
    """The last entries, newest first, optionally for one job."""
    query = sa.select(audit).order_by(audit.c.id.desc()).limit(limit)
    if job is not None:
        query = query.where(audit.c.job == str(job))
    with store.reading() as connection:
        return [_entry(row) for row in connection.execute(query)]


def of_jobs(store: Store, jobs: list[str], what: str) -> list[Entry]:
    """The entries of this kind for any of these jobs, oldest first."""
    wanted = pl.DataFrame({"job": jobs}, schema={"job": pl.String}).unique()
    if wanted.is_empty():
        return []
    with store.reading() as connection:
        staged = bulk.stage(connection, audit, wanted)
        query = sa.select(audit).join_from(staged, audit, staged.c.job == audit.c.job)
        query = query.where(audit.c.what == what).order_by(audit.c.id)
        return [_entry(row) for row in connection.execute(query)]


def _entry(row: Any) -> Entry:
    return Entry(
        at=row.at,
        who=row.who,
        what=row.what,
        job=None if row.job is None else parse_key(row.job),
        detail=row.detail,
    )
