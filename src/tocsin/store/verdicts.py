"""Verdicts, each stored once, and the outbox from which sinks are served."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import outbox, screenings, verdicts

__all__ = ["Message", "StoredVerdict", "acknowledge", "findings_of", "of_job", "record", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """A verdict as a JSON document, and what the store looks it up by."""

    job: JobKey
    stage: Stage
    seq: int
    at: int
    level: str
    late: bool = False
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """A verdict that a sink has not taken yet."""

    id: int
    document: dict[str, Any]


def record(store: Store, found: Iterable[StoredVerdict], sinks: Sequence[str] = ()) -> list[StoredVerdict]:
    """Store the verdicts, each with a message to every sink; returned are those that were not there before."""
    fresh = []
    with store.writing() as connection:
        for verdict in found:
            row = {
                "job": str(verdict.job),
                "stage": str(verdict.stage),
                "seq": verdict.seq,
                "at": verdict.at,
                "level": verdict.level,
                "late": verdict.late,
                "document": verdict.document,
            }
            if not insert_new(connection, verdicts, row):
                continue
            fresh.append(verdict)
            if sinks:
                number = (
                    sa.select(verdicts.c.id)
                    .filter_by(job=row["job"], stage=row["stage"], seq=row["seq"])
                    .scalar_subquery()
                )
                connection.execute(
                    sa.insert(outbox).values(verdict=number), [{"sink": sink} for sink in sinks]
                )
    return fresh


def of_job(store: Store, job: JobKey) -> list[StoredVerdict]:
    """All verdicts on a job, in the order in which they were given."""
    with store.reading() as connection:
        rows = connection.execute(
            sa.select(verdicts).where(verdicts.c.job == str(job)).order_by(verdicts.c.at, verdicts.c.id)
        ).all()
    return [
        StoredVerdict(
            job=job,
            stage=Stage(row.stage),
            seq=row.seq,
            at=row.at,
            level=row.level,
            late=row.late,
            document=row.document,
        )
        for row in rows
    ]


def findings_of(
    store: Store, kind: str, *, job: str | None = None, user: tuple[str, str] | None = None, since: int = 0
) -> list[dict[str, Any]]:
    """The findings of a kind, as JSON, in the verdicts on a job or on a user's (cluster, user) screened jobs.

    Of a user, only jobs that were submitted at the instant `since` or later.
    """
    # Few verdicts have the finding, so the database finds those; which other words hold this one is seen below.
    query = sa.select(verdicts.c.document).where(sa.cast(verdicts.c.document, sa.Text).contains(f'"{kind}"'))
    if job is not None:
        query = query.where(verdicts.c.job == job)
    if user is not None:
        query = query.join(screenings, screenings.c.job == verdicts.c.job).where(
            screenings.c.cluster == user[0], screenings.c.user == user[1], screenings.c.submit >= since
        )
    with store.reading() as connection:
        documents = connection.execute(query.order_by(verdicts.c.id)).scalars().all()
    return [finding for document in documents for finding in document["findings"] if finding["kind"] == kind]


def waiting(store: Store, sink: str, limit: int = 1000) -> list[Message]:
    """The oldest messages that the sink has not taken; they wait until they are acknowledged."""
    with store.reading() as connection:
        rows = connection.execute(
            sa.select(outbox.c.id, verdicts.c.document)
            .join_from(outbox, verdicts)
            .where(outbox.c.sink == sink)
            .order_by(outbox.c.id)
            .limit(limit)
        ).all()
    return [Message(row.id, row.document) for row in rows]


def acknowledge(store: Store, messages: Iterable[Message]) -> None:
    """The sink has taken these."""
    if rows := [{"number": message.id} for message in messages]:
        with store.writing() as connection:
            connection.execute(sa.delete(outbox).where(outbox.c.id == sa.bindparam("number")), rows)
