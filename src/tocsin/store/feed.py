"""Verdicts and cases in the order in which they were stored, forwards or backwards from a position."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from tocsin.core.units import format_instant
from tocsin.store.database import Store
from tocsin.store.tables import cases, jobs, key_text, verdicts

__all__ = ["Event", "Position", "VerdictFilter", "events_after", "last_position", "newest_verdicts"]


class Position(NamedTuple):
    """The last verdict and the last case read."""

    verdict: int = 0
    case: int = 0


class Event(NamedTuple):
    position: Position
    """After this event."""
    kind: str
    """verdict or case"""
    document: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFilter:
    """An empty value is no condition."""

    levels: Sequence[str] = ()
    stages: Sequence[str] = ()
    users: Sequence[str] = ()
    clusters: Sequence[str] = ()
    id: str | None = None


def last_position(store: Store) -> Position:
    with store.reading() as connection:
        last = (
            connection.execute(sa.select(sa.func.max(table.c.id))).scalar() or 0
            for table in (verdicts, cases)
        )
        return Position(*last)


def events_after(store: Store, position: Position, limit: int) -> list[Event]:
    """At most `limit` of each kind, cases first, because the verdict that opened a case names it."""
    with store.reading() as connection:
        opened = connection.execute(
            sa.select(cases).where(cases.c.id > position.case).order_by(cases.c.id).limit(limit)
        ).all()
        given = connection.execute(
            sa.select(verdicts.c.id, verdicts.c.document)
            .where(verdicts.c.id > position.verdict)
            .order_by(verdicts.c.id)
            .limit(limit)
        ).all()
    found = []
    for row in opened:
        position = position._replace(case=row.id)
        document = {"case": row.id, "status": row.status, "cause": row.cause, "job": row.job}
        found.append(
            Event(position, "case", document | {"opened": format_instant(row.opened)} | row.document)
        )
    for row in given:
        position = position._replace(verdict=row.id)
        found.append(Event(position, "verdict", row.document))
    return found


def newest_verdicts(
    store: Store, which: VerdictFilter, *, before: int | None, limit: int
) -> list[tuple[int, dict[str, Any]]]:
    """Row numbers and documents, newest first; with `before`, only older ones."""
    query = sa.select(verdicts.c.id, verdicts.c.document).order_by(verdicts.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(verdicts.c.id < before)
    if which.levels:
        query = query.where(verdicts.c.level.in_(list(which.levels)))
    if which.stages:
        query = query.where(verdicts.c.stage.in_(list(which.stages)))
    if which.clusters:
        query = query.where(
            sa.or_(*(verdicts.c.job.startswith(f"{name}:", autoescape=True) for name in which.clusters))
        )
    if which.users:
        query = query.where(
            verdicts.c.job.in_(sa.select(key_text()).where(jobs.c.user.in_(list(which.users))))
        )
    with store.reading() as connection:
        return [(row.id, row.document) for row in connection.execute(query)]
