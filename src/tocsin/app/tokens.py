"""`tokens`: create, list and revoke API and relay tokens, as an administrator on the service's host."""

import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.roles import ROLES, RoleLists
from tocsin.core.errors import Forbidden, InputError, StoreError
from tocsin.core.units import format_instant
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.store.tokens import Token

__all__ = ["TokenRequest", "create_token", "list_tokens", "revoke_token", "token_json"]

MOST_DAYS = 3660
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    label: str
    """Its purpose; also its user if none is given."""
    user: str | None = None
    role: str = "user"
    read_only: bool = False
    relay: bool = False
    days: int = 90
    out: str | None = None
    """A new file for the secret, readable only by its owner."""


def create_token(app: App, request: TokenRequest) -> "tuple[Token, str]":
    """A new token and its secret, which is written to the file if one is named, and is shown only now."""
    from dataclasses import replace

    from tocsin.store.tokens import Token, TokenKind, issue, revoke

    me, mine = _administrator(app)
    user = "" if request.relay else request.user or request.label
    for text in {request.label, user or request.label}:
        if not _NAME.fullmatch(text):
            raise InputError(f'"{text}" is not a valid token name; use letters, digits and _ . @ -')
    if not 1 <= request.days <= MOST_DAYS:
        raise InputError(f"a token cannot be valid for {request.days} days; choose 1 to {MOST_DAYS}")
    if ROLES.index(request.role) > ROLES.index(mine):
        raise Forbidden(f"{me} is {mine} here and cannot create a token with the role {request.role}")
    now = int(time.time())
    token = Token(
        kind=TokenKind.RELAY if request.relay else TokenKind.API,
        label=request.label,
        user=user,
        role=request.role,
        read_only=request.read_only,
        created=now,
        created_by=me,
        expires=now + request.days * 86_400,
    )
    number, secret = issue(app.store, token)
    if request.out:
        try:
            _write_new(Path(request.out), secret)
        except OSError as error:
            with suppress(StoreError):  # nobody has the secret
                revoke(app.store, number, at=now, who=me)
            raise InputError(
                f"the token cannot be written to {request.out}: {error.strerror}; name a new file with --out"
            ) from None
    return replace(token, number=number), secret


def list_tokens(app: App, *, everything: bool = False) -> "list[Token]":
    from tocsin.store.tokens import listed

    _administrator(app)
    return listed(app.store, at=int(time.time()), everything=everything)


def revoke_token(app: App, number: int) -> "Token":
    from tocsin.store.tokens import revoke

    me, _ = _administrator(app)
    return revoke(app.store, number, at=int(time.time()), who=me)


def token_json(token: "Token") -> dict[str, Any]:
    return {
        "number": token.number,
        "kind": str(token.kind),
        "name": token.label,
        "user": token.user or None,
        "role": token.role,
        "read_only": token.read_only,
        "created": format_instant(token.created),
        "created_by": token.created_by,
        "expires": format_instant(token.expires),
        "revoked": None if token.ended is None else format_instant(token.ended),
        "revoked_by": token.ended_by,
    }


def _administrator(app: App) -> tuple[str, str]:
    """The user who runs this command, by uid, and the user's role."""
    user, uid = user_name(), os.geteuid()
    owns = uid in (0, app.home.prepare().root.stat().st_uid)  # can change the store anyway
    role = "admin" if owns else RoleLists(app.settings.service).role(user)
    if role != "admin":
        raise Forbidden(
            f"tokens are managed by administrators, and {user} is {role} here; ask one of them, or root"
        )
    return user, role


def _write_new(path: Path, secret: str) -> None:
    """Create a new file: an existing one may be open to others, or a link to another place."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        os.fchmod(descriptor, 0o600)
        file.write(secret + "\n")
