"""Credentials issued by the service, stored by the hash of their secret."""

import hashlib
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tocsin.core.errors import NotFound
from tocsin.store import audit
from tocsin.store.database import Store
from tocsin.store.tables import tokens

__all__ = ["Token", "TokenKind", "find", "issue", "listed", "revoke", "use_up"]

_FORGET = 86_400
"""Seconds after its end for which a session or a one-time link is kept; API and relay tokens are kept for ever."""


class TokenKind(StrEnum):
    API = "api"
    RELAY = "relay"
    SESSION = "session"
    LOGIN = "login"


_PASSING = (TokenKind.SESSION, TokenKind.LOGIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What a credential grants. Only its bearer knows the secret."""

    number: int = 0
    kind: TokenKind
    label: str
    user: str
    role: str
    read_only: bool = False
    created: int
    created_by: str
    expires: int
    ended: int | None = None
    ended_by: str | None = None


def issue(store: Store, token: Token) -> tuple[int, str]:
    """Store a new token; returns its number and its secret, which cannot be read again."""
    secret = f"tocsin_{token.kind}_{secrets.token_urlsafe(32)}"
    row = {
        "hash": _hash(secret),
        "kind": str(token.kind),
        "label": token.label,
        "user": token.user,
        "role": token.role,
        "read_only": token.read_only,
        "created": token.created,
        "created_by": token.created_by,
        "expires": token.expires,
    }
    with store.writing() as connection:
        gone = token.created - _FORGET
        past = sa.or_(tokens.c.expires < gone, tokens.c.ended < gone)
        connection.execute(sa.delete(tokens).where(tokens.c.kind.in_(_PASSING), past))
        number = int(connection.execute(sa.insert(tokens).values(row).returning(tokens.c.id)).scalar_one())
        if token.kind is not TokenKind.LOGIN:  # the session that replaces it is recorded
            detail = {name: row[name] for name in ("kind", "label", "user", "role", "read_only", "expires")}
            what = f"{token.kind} token created" if token.kind not in _PASSING else "login"
            entry = audit.Entry(
                at=token.created, who=token.created_by, what=what, detail={"number": number, **detail}
            )
            audit.write(connection, entry)
    return number, secret


def find(store: Store, secret: str, kinds: set[TokenKind], *, at: int) -> Token | None:
    """The valid token of these kinds with this secret."""
    with store.reading() as connection:
        row = connection.execute(sa.select(tokens).where(_valid(secret, kinds, at))).first()
    return None if row is None else _token(row)


def use_up(store: Store, secret: str, kind: TokenKind, *, at: int, who: str) -> Token | None:
    """Use up the valid token with this secret; of several callers, only one gets it."""
    change = sa.update(tokens).where(_valid(secret, {kind}, at)).values(ended=at, ended_by=who)
    with store.writing() as connection:
        row = connection.execute(change.returning(*tokens.c)).first()
    return None if row is None else _token(row)


def revoke(store: Store, number: int, *, at: int, who: str) -> Token:
    with store.writing() as connection:
        row = connection.execute(sa.select(tokens).where(tokens.c.id == number)).first()
        if row is None or row.ended is not None:
            state = "is revoked already" if row else "does not exist"
            raise NotFound(f"token {number} {state}; see: tocsin tokens list --all")
        connection.execute(sa.update(tokens).where(tokens.c.id == number).values(ended=at, ended_by=who))
        detail = {"number": number, "kind": row.kind, "label": row.label, "user": row.user}
        audit.write(connection, audit.Entry(at=at, who=who, what="token revoked", detail=detail))
    return _token(row)


def listed(store: Store, *, at: int, everything: bool = False) -> list[Token]:
    """The tokens in force, oldest first; with `everything`, ended ones as well. One-time links are not listed."""
    query = sa.select(tokens).where(tokens.c.kind != str(TokenKind.LOGIN)).order_by(tokens.c.id)
    if not everything:
        query = query.where(tokens.c.ended.is_(None), tokens.c.expires > at)
    with store.reading() as connection:
        return [_token(row) for row in connection.execute(query)]


def _hash(secret: str) -> str:
    """Unsalted and fast: the secrets are random and have 256 bits."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _valid(secret: str, kinds: set[TokenKind], at: int) -> sa.ColumnElement[bool]:
    return sa.and_(
        tokens.c.hash == _hash(secret),
        tokens.c.kind.in_([str(kind) for kind in kinds]),
        tokens.c.ended.is_(None),
        tokens.c.expires > at,
    )


def _token(row: Any) -> Token:
    return Token(
        number=row.id,
        kind=TokenKind(row.kind),
        label=row.label,
        user=row.user,
        role=row.role,
        read_only=row.read_only,
        created=row.created,
        created_by=row.created_by,
        expires=row.expires,
        ended=row.ended,
        ended_by=row.ended_by,
    )
