"""The credentials that the service issues and revokes: API and relay tokens, browser sessions, one-time links."""

import time
from collections.abc import Callable
from pathlib import Path

from tocsin.app.app import App
from tocsin.store.tokens import Token, TokenKind, find, issue, use_up

__all__ = ["Credentials", "Token", "TokenKind", "secret_in"]


class Credentials:
    """The tokens in the store, as of now."""

    def __init__(self, app: App, *, now: Callable[[], float] = time.time) -> None:
        self._app, self._now = app, now

    def now(self) -> int:
        return int(self._now())

    def find(self, secret: str, *kinds: TokenKind) -> Token | None:
        """The valid token of these kinds with this secret."""
        return find(self._app.store, secret, set(kinds), at=self.now())

    def use_up(self, secret: str, kind: TokenKind, *, who: str) -> Token | None:
        """Use up the valid token with this secret; of several callers, only one gets it."""
        return use_up(self._app.store, secret, kind, at=self.now(), who=who)

    def issue(self, kind: TokenKind, *, user: str, role: str, label: str, seconds: int) -> str:
        """Create a token and return its secret."""
        at = self.now()
        token = Token(
            kind=kind, label=label, user=user, role=role, created=at, created_by=user, expires=at + seconds
        )
        return issue(self._app.store, token)[1]


def secret_in(file: str) -> str:
    """Read a secret from a file, which must not be readable by others."""
    from tocsin.sources.secrets import read_secret

    return read_secret(Path(file))
