"""Browser sessions, and the one-time links that start them."""

from tocsin.app.credentials import Credentials, TokenKind
from tocsin.core.errors import Unauthenticated
from tocsin.serve.principal import Principal

__all__ = ["LINK_SECONDS", "Sessions"]

LINK_SECONDS = 300


class Sessions:
    def __init__(self, credentials: Credentials, *, hours: int) -> None:
        self._credentials, self.seconds = credentials, hours * 3600

    def link(self, principal: Principal) -> str:
        """A code that logs a browser in as this principal, once, within five minutes."""
        role = principal.role.name.lower()
        return self._credentials.issue(
            TokenKind.LOGIN, user=principal.user, role=role, label=principal.method, seconds=LINK_SECONDS
        )

    def enter(self, code: str) -> tuple[str, str]:
        """Use up a code; returns the user and the secret of a new session."""
        token = self._credentials.use_up(code, TokenKind.LOGIN, who="login")
        if token is None:
            raise Unauthenticated(
                "this link has already been used, or is older than 5 minutes; run tocsin login again"
            )
        return token.user, self.begin(token.user, token.role, token.label)

    def begin(self, user: str, role: str, method: str) -> str:
        """Start a session and return its secret."""
        return self._credentials.issue(
            TokenKind.SESSION, user=user, role=role, label=method, seconds=self.seconds
        )

    def end(self, secret: str, user: str) -> None:
        self._credentials.use_up(secret, TokenKind.SESSION, who=user)
