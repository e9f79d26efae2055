"""Permissions that are kept in the store: who may run which operation, from when to when, why, and who said so."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tocsin.core.errors import NotFound
from tocsin.store import audit
from tocsin.store.database import Store
from tocsin.store.tables import allow

__all__ = ["AllowEntry", "DefaultRule", "SubjectKind", "add", "entries", "remove", "set_default"]


class SubjectKind(StrEnum):
    """Whom a permission is for; a default is the rule for all who are not listed."""

    USER = "user"
    ACCOUNT = "account"
    GROUP = "group"
    DEFAULT = "default"


class DefaultRule(StrEnum):
    """Who may run an operation: everybody, those who are listed, nobody."""

    ALLOWED = "allowed"
    LISTED = "listed"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowEntry:
    """One permission. It counts for jobs that were submitted from `since` on and before `until`."""

    operation: str
    kind: SubjectKind
    name: str
    since: int | None = None
    until: int | None = None
    reason: str = ""
    granted_by: str = ""
    origin: str = ""
    """Where it is written: a number in the store, or a file and line."""

    def counts(self, at: int) -> bool:
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)


def add(store: Store, grant: AllowEntry, *, at: int) -> int:
    """Write a permission down; returned is its number."""
    row = {
        "operation": grant.operation,
        "kind": str(grant.kind),
        "name": grant.name,
        "since": grant.since,
        "until": grant.until,
        "reason": grant.reason,
        "granted_by": grant.granted_by,
        "at": at,
    }
    with store.writing() as connection:
        number = connection.execute(sa.insert(allow).values(row).returning(allow.c.id)).scalar_one()
    detail = {"number": number, **row}
    audit.append(store, audit.Entry(at=at, who=grant.granted_by, what="allow added", detail=detail))
    return int(number)


def set_default(
    store: Store, operation: str, default: DefaultRule, *, at: int, who: str, reason: str = ""
) -> int:
    """The rule for all who are not listed; it takes the place of the one before."""
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
    grant = AllowEntry(
        operation=operation, kind=SubjectKind.DEFAULT, name=str(default), reason=reason, granted_by=who
    )
    return add(store, grant, at=at)


def remove(store: Store, number: int, *, at: int, who: str) -> AllowEntry:
    """Take a permission back from now on; that it was given stays written down."""
    with store.writing() as connection:
        row = connection.execute(sa.select(allow).where(allow.c.id == number)).first()
        if row is None or row.removed is not None:
            state = "was taken back already" if row else "is not in the store"
            raise NotFound(f"permission {number} {state}; list those that count with: tocsin allow list")
        connection.execute(sa.update(allow).where(allow.c.id == number).values(removed=at, removed_by=who))
    audit.append(store, audit.Entry(at=at, who=who, what="allow removed", detail={"number": number}))
    return _grant(row)


def entries(store: Store) -> list[AllowEntry]:
    """Every permission; one that was taken back ends then, so that a late verdict is the same as a timely one."""
    with store.reading() as connection:
        return [_grant(row) for row in connection.execute(sa.select(allow).order_by(allow.c.id))]


def _grant(row: Any) -> AllowEntry:
    ends = [end for end in (row.until, row.removed) if end is not None]
    return AllowEntry(
        operation=row.operation,
        kind=SubjectKind(row.kind),
        name=row.name,
        since=row.since,
        until=min(ends, default=None),
        reason=row.reason,
        granted_by=row.granted_by,
        origin=f"permission {row.id}",
    )
