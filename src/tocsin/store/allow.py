"""Allow-list entries in the store: who may run which operation, when, why, and who granted it."""

from typing import Any

import sqlalchemy as sa

from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.errors import NotFound
from tocsin.store import audit
from tocsin.store.database import Store
from tocsin.store.tables import allow

__all__ = ["add", "entries", "remove", "set_default"]


def add(store: Store, entry: AllowEntry, *, at: int) -> int:
    """Add an entry; returns its number, or that of an equal one in force."""
    with store.writing() as connection:
        same = (
            sa.select(allow.c.id)
            .where(*(allow.c[name].is_not_distinct_from(value) for name, value in _what(entry).items()))
            .where(allow.c.removed.is_(None), sa.or_(allow.c.until.is_(None), allow.c.until > at))
            .order_by(allow.c.id)
        )
        found = connection.execute(same).scalar()
        return int(found) if found is not None else _insert(connection, entry, at)


def set_default(
    store: Store, operation: str, default: DefaultRule, *, at: int, who: str, reason: str = ""
) -> int:
    """Set the rule for everyone not listed, replacing the previous one."""
    entry = AllowEntry(
        operation=operation, kind=SubjectKind.DEFAULT, name=str(default), reason=reason, granted_by=who
    )
    with store.writing() as connection:
        connection.execute(
            sa.update(allow)
            .where(
                allow.c.operation == operation,
                allow.c.kind == str(SubjectKind.DEFAULT),
                allow.c.removed.is_(None),
            )
            .values(removed=at, removed_by=who)
        )
        return _insert(connection, entry, at)


def remove(store: Store, number: int, *, at: int, who: str) -> AllowEntry:
    """Revoke an entry from now on; its row is kept."""
    with store.writing() as connection:
        row = connection.execute(sa.select(allow).where(allow.c.id == number)).first()
        if row is None or row.removed is not None:
            state = "is already revoked" if row else "does not exist"
            raise NotFound(f"allow-list entry {number} {state}; see: tocsin allow list")
        connection.execute(sa.update(allow).where(allow.c.id == number).values(removed=at, removed_by=who))
        audit.write(connection, audit.Entry(at=at, who=who, what="allow removed", detail={"number": number}))
    return _entry(row)


def _what(entry: AllowEntry) -> dict[str, Any]:
    return {
        "operation": entry.operation,
        "kind": str(entry.kind),
        "name": entry.name,
        "since": entry.since,
        "until": entry.until,
    }


def _insert(connection: sa.Connection, entry: AllowEntry, at: int) -> int:
    row = _what(entry) | {"reason": entry.reason, "granted_by": entry.granted_by, "at": at}
    number = int(connection.execute(sa.insert(allow).values(row).returning(allow.c.id)).scalar_one())
    detail = {"number": number, **row}
    audit.write(connection, audit.Entry(at=at, who=entry.granted_by, what="allow added", detail=detail))
    return number


_ALL = sa.select(allow).order_by(allow.c.id)


def entries(store: Store) -> list[AllowEntry]:
    """All entries. One without a first day begins when it was made, and a revoked one ends at its revocation, so that
    late verdicts equal timely ones."""
    with store.reading() as connection:
        return [_entry(row) for row in connection.execute(_ALL)]


def _entry(row: Any) -> AllowEntry:
    ends = [end for end in (row.until, row.removed) if end is not None]
    return AllowEntry(
        operation=row.operation,
        kind=SubjectKind(row.kind),
        name=row.name,
        since=row.at if row.since is None else row.since,
        until=min(ends, default=None),
        reason=row.reason,
        granted_by=row.granted_by,
        origin=f"entry {row.id}",
    )
