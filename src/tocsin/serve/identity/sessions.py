"""Sessions of browsers, and the one-time links that begin them."""

import time
from collections.abc import Callable

from tocsin.core.errors import Unauthenticated
from tocsin.serve.principal import Principal
from tocsin.store.database import Store
from tocsin.store.tokens import Token, TokenKind, issue, use_up

__all__ = ["LINK_SECONDS", "Sessions"]

LINK_SECONDS = 300


class Sessions:
    def __init__(self, store: Store, *, hours: int, now: Callable[[], float] = time.time) -> None:
        self._store, self.seconds, self._now = store, hours * 3600, now

    def link(self, principal: Principal) -> str:
        """A code that lets a browser become this principal, once, within five minutes."""
        return self._issue(
            TokenKind.LOGIN, principal.user, principal.role.name.lower(), LINK_SECONDS, principal.method
        )

    def enter(self, code: str) -> tuple[str, str]:
        """Use a code up: the user, and the secret of a new session."""
        token = use_up(self._store, code, TokenKind.LOGIN, at=int(self._now()), who="login")
        if token is None:
            raise Unauthenticated(
                "this link was used already or is older than 5 minutes; run tocsin login again"
            )
        return token.user, self.begin(token.user, token.role, token.label)

    def begin(self, user: str, role: str, method: str) -> str:
        return self._issue(TokenKind.SESSION, user, role, self.seconds, method)

    def end(self, secret: str, user: str) -> None:
        use_up(self._store, secret, TokenKind.SESSION, at=int(self._now()), who=user)

    def _issue(self, kind: TokenKind, user: str, role: str, seconds: int, label: str) -> str:
        at = int(self._now())
        token = Token(
            kind=kind, label=label, user=user, role=role, created=at, created_by=user, expires=at + seconds
        )
        return issue(self._store, token)[1]
