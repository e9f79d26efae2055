"""The parts of a request that identification reads: its peer, its request line and its headers."""

import re
from typing import Self

from tocsin.core.errors import Unauthenticated
from tocsin.serve.identity.asgi import Scope
from tocsin.serve.identity.peer import Peer, peer_of

__all__ = ["Request", "checked_user"]

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,63}", re.ASCII)


class Request:
    def __init__(self, peer: Peer, method: str, target: str, headers: list[tuple[bytes, bytes]]) -> None:
        self.peer, self.method, self.target = peer, method, target
        self._headers = headers

    @classmethod
    def of(cls, scope: Scope) -> Self:
        path = scope.get("raw_path") or scope["path"].encode()
        query = scope.get("query_string", b"")
        target = (path + b"?" + query if query else path).decode("latin-1")
        return cls(peer_of(scope), scope["method"], target, scope["headers"])

    def header(self, name: str) -> str | None:
        """The value of a header; a repeated one is ambiguous, so it is refused."""
        wanted = name.lower().encode("latin-1")
        found = [value for key, value in self._headers if key.lower() == wanted]
        if len(found) > 1:
            raise Unauthenticated(f"the header {name} was sent {len(found)} times; send it once")
        return found[0].decode("latin-1").strip() if found else None

    def cookie(self, name: str) -> str | None:
        pairs = (part.strip().partition("=") for part in (self.header("cookie") or "").split(";"))
        found = [value for key, _, value in pairs if key == name]
        if len(found) > 1:
            raise Unauthenticated(f"the cookie {name} was sent {len(found)} times; delete it in the browser")
        return found[0] if found else None

    def require_private(self, what: str) -> None:
        if not self.peer.private:
            raise Unauthenticated(
                f"{what} was sent over a connection that others can read, so it is refused; use https, or renew it if "
                "the network is not trusted"
            )


def checked_user(name: str, origin: str) -> str:
    """A valid user name: it is compared with owners of jobs and written to logs."""
    if not _USER.fullmatch(name):
        raise Unauthenticated(f"{origin} is not a valid user name; use letters, digits and _ . @ $ -")
    return name
