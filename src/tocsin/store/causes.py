"""Causes of failures: stored by job, and read for the latest runs of a user's program."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from tocsin.core.json_form import from_json, to_json
from tocsin.core.verdict import Cause
from tocsin.store.database import Store
from tocsin.store.tables import causes, jobs, key_text

__all__ = ["Run", "keep", "keep_cause", "latest_runs", "stored_cause"]


class Run(NamedTuple):
    """An ended job, its cause if it was looked for, and what it had requested."""

    job: str
    outcome: str
    cause: Cause | None
    req_memory: int | None
    time_limit: int | None


def keep_cause(store: Store, job: str, cause: Cause, at: int) -> None:
    """A later result replaces an earlier one: files may be readable, or patterns better, by then."""
    with store.writing() as connection:
        keep(connection, job, cause, at)


def keep(connection: sa.Connection, job: str, cause: Cause, at: int) -> None:
    row: dict[str, Any] = {"job": job, "at": at, "kind": cause.kind, "document": to_json(cause)}
    connection.execute(sa.delete(causes).where(causes.c.job == job))
    connection.execute(sa.insert(causes).values(row))


def stored_cause(store: Store, job: str) -> Cause | None:
    with store.reading() as connection:
        document = connection.scalar(sa.select(causes.c.document).where(causes.c.job == job))
    return from_json(document, Cause, "the cause") if document else None


def latest_runs(
    store: Store, *, cluster: str, user: str, name: str, known_by: int, most: int, skip: str | None = None
) -> list[Run]:
    """The last ended jobs of this user and name whose outcome was known by an instant, latest first."""
    key = key_text()
    ended = (
        jobs.c.cluster == cluster,
        jobs.c.user == user,
        jobs.c.name == name,
        jobs.c.outcome.is_not(None),
        jobs.c.known_at <= known_by,
    )
    query = (
        sa.select(key.label("job"), jobs.c.outcome, causes.c.document, jobs.c.req_memory, jobs.c.time_limit)
        .join_from(jobs, causes, causes.c.job == key, isouter=True)
        .where(*ended, *([key != skip] if skip else []))
        .order_by(jobs.c.end.desc(), jobs.c.submit.desc())
        .limit(most)
    )
    with store.reading() as connection:
        rows = connection.execute(query).all()
    return [
        Run(
            row.job,
            row.outcome,
            from_json(row.document, Cause, "the cause") if row.document else None,
            row.req_memory,
            row.time_limit,
        )
        for row in rows
    ]
