"""Who is asking, as long as nothing better is installed: the owner of the socket, and in a demonstration everybody here."""

from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.serve.principal import Principal, Role
from tocsin.serve.problems import problem
from tocsin.store.home import user_name

__all__ = ["StandIn"]

PUBLIC = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/static/")
LARGEST = 8 << 20
"""Bytes of a body."""
_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
]


class _TooLarge(Exception):
    """The body went over the limit while it was read."""


class StandIn:
    """Puts the principal into the request's state, refuses others, and bounds bodies."""

    def __init__(self, app: ASGIApp, *, demo: bool) -> None:
        self._app, self._demo = app, demo
        self._owner = user_name()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        principal = self._principal(scope)
        if principal is None and not scope["path"].startswith(PUBLIC):
            refused = problem(
                401,
                "ask on the unix socket of the service: over HTTP it cannot know who you are",
                kind="unauthenticated",
            )
            await refused(scope, receive, secured)
            return
        scope.setdefault("state", {})["principal"] = principal
        try:
            await self._app(scope, _bounded(scope, receive), secured)
        except _TooLarge:
            too_large = problem(
                413, f"the body is larger than {LARGEST >> 20} MiB", headers={"Connection": "close"}
            )
            await too_large(scope, receive, secured)

    def _principal(self, scope: Scope) -> Principal | None:
        client = scope.get("client")
        if client is None:
            return Principal(self._owner, Role.OPERATOR, "socket")
        if self._demo and ip_address(client[0]).is_loopback:
            return Principal("demo", Role.OPERATOR, "demo")
        return None


def _bounded(scope: Scope, receive: Receive) -> Receive:
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    size = int(declared) if declared.isdigit() and len(declared) < 16 else LARGEST + 1
    read = 0

    async def bounded() -> Message:
        nonlocal read
        if size > LARGEST:
            raise _TooLarge
        message = await receive()
        read += len(message.get("body", b""))
        if read > LARGEST:
            raise _TooLarge
        return message

    return bounded
