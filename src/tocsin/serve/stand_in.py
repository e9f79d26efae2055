"""Who is asking, as long as nothing better is installed: the owner of the socket, and in a demonstration everybody here."""

from contextlib import suppress
from ipaddress import ip_address

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin.serve.principal import Principal, Role
from tocsin.serve.problems import problem

__all__ = ["StandIn"]

PUBLIC = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/static/")
_NOBODY = "ask on the unix socket of the service: over HTTP it cannot know who you are"
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

    def __init__(self, app: ASGIApp, *, owner: str, demo: bool) -> None:
        self._app, self._owner, self._demo = app, owner, demo

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, too_large = False, _declared(scope) > LARGEST

        async def secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            if not too_large or started:  # else it is the framework's answer to a body that was cut off
                await send(message)

        read = 0

        async def bounded() -> Message:
            nonlocal read, too_large
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST:
                too_large = True
                raise _TooLarge
            return message

        principal = self._principal(scope)
        scope.setdefault("state", {})["principal"] = principal
        if principal is None and not scope["path"].startswith(PUBLIC):
            refused = problem(401, _NOBODY, kind="unauthenticated")
            await refused(scope, receive, secured)
            return
        if not too_large:
            with suppress(_TooLarge):
                await self._app(scope, bounded, secured)
        if too_large:
            started = True
            close = {"Connection": "close"}
            await problem(413, f"the body is larger than {LARGEST >> 20} MiB", headers=close)(
                scope, receive, secured
            )

    def _principal(self, scope: Scope) -> Principal | None:
        client = scope.get("client")
        if client is None:
            return Principal(self._owner, Role.OPERATOR, "socket")
        if self._demo and ip_address(client[0]).is_loopback:
            return Principal("demo", Role.OPERATOR, "demo")
        return None


def _declared(scope: Scope) -> int:
    text = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(text) if text.isdigit() and len(text) < 16 else LARGEST + 1
