"""The gate before the application: host, credential, rate, origin and role of each request."""

import asyncio
import math
from collections.abc import Callable, Collection

from tocsin.core.errors import TocsinError, Unauthenticated
from tocsin.serve.identity.asgi import App, Receive, Scope, Send, answer, problem, refuse
from tocsin.serve.identity.authenticators import AMBIENT
from tocsin.serve.identity.browser import check_host, check_origin
from tocsin.serve.identity.identification import Identification
from tocsin.serve.identity.pages import absent_page, unknown_page
from tocsin.serve.identity.peer import peer_of
from tocsin.serve.identity.rates import Buckets
from tocsin.serve.identity.request import Request
from tocsin.serve.identity.roles import Permission, authorize, match
from tocsin.serve.identity.turns import Turns
from tocsin.serve.principal import Principal

__all__ = ["Gate", "TooMany"]

_HTML = "text/html; charset=utf-8"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_AT_ONCE = 16
"""Requests of one user in progress; further ones wait. A check takes some milliseconds of one process, so the checks of
one user delay those of others by less than the hook in sbatch waits."""
MOST_STREAMS = 100
"""Event streams of one user; further ones are refused."""
_STREAM_AGAIN = 60.0
"""Seconds after which a refused client may try again."""
_BEAT = "/healthz"
"""Neither counted nor made to wait: a relay asks it for the heartbeat of a login node, from the same address as all
users there."""


class TooMany(Exception):
    """A client is over its rate limit; `seconds` until it may try again."""

    def __init__(self, seconds: float) -> None:
        self.seconds = math.ceil(seconds)


class Gate:
    """Lets a request through with `scope["state"]["principal"]`, which is None on public routes."""

    def __init__(
        self,
        app: App,
        identification: Identification,
        *,
        public_url: str = "",
        oidc: bool = False,
        per_minute: int = 0,
        private_data: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._app, self._identification, self._public_url = app, identification, public_url
        self._oidc, self._buckets, self._private_data = oidc, Buckets(per_minute), private_data
        self._turns, self._streams = Turns(MOST_AT_ONCE), Turns(MOST_STREAMS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        routes = match(scope["path"])
        template, permission = routes.get(scope["method"], ("", None))
        try:
            if permission is None:
                self._count(peer_of(scope).key)
            else:
                principal = await self._admit(scope, template, permission)
                scope.setdefault("state", {})["principal"] = principal
                key = _key(scope, principal)
                if permission.stream and self._streams.full(key):
                    raise TooMany(_STREAM_AGAIN)
        except TooMany as error:
            retry = [(b"retry-after", str(error.seconds).encode())]
            await problem(send, 429, f"too many requests; try again in {error.seconds} s", retry)
        except Unauthenticated as error:
            await self._unknown(scope, send, error)
        except TocsinError as error:  # forbidden, or Slurm or the store cannot be asked
            await refuse(send, error)
        else:
            if template == _BEAT:
                await self._app(scope, receive, send)
            elif permission is not None:
                async with (self._streams if permission.stream else self._turns).turn(key):
                    await self._app(scope, receive, send)
            elif routes:
                allowed = ", ".join(sorted(routes)).encode()
                await problem(
                    send,
                    405,
                    "this address does not support this method; see /openapi.json",
                    [(b"allow", allowed)],
                )
            elif _is_browser(scope):
                await answer(send, 404, absent_page(), _HTML)
            else:
                await problem(
                    send, 404, "there is nothing at this address; see /openapi.json", kind="not-found"
                )

    async def _unknown(self, scope: Scope, send: Send, error: Unauthenticated) -> None:
        """A page for browsers, a problem document for everybody else."""
        if _is_browser(scope):
            await answer(send, 401, unknown_page(str(error), oidc=self._oidc), _HTML)
        else:
            await refuse(send, error, [(b"www-authenticate", b'Bearer realm="tocsin"')])

    async def _admit(self, scope: Scope, template: str, permission: Permission) -> Principal | None:
        request = Request.of(scope)
        if permission.least is None:
            if template != _BEAT:
                self._count(request.peer.key)
            return None
        try:
            principal = await self._identification.principal(scope)
        except Unauthenticated:
            self._count(request.peer.key)
            raise
        self._count(_key(scope, principal))
        if principal.method in AMBIENT:
            check_host(request, self._public_url)
            if scope["method"] not in _SAFE:
                check_origin(request, self._public_url)
        hidden = await asyncio.to_thread(self._private_data) if permission.private else ()
        authorize(principal, permission, f"{scope['method']} {template}", hidden)
        return principal

    def _count(self, key: str) -> None:
        if wait := self._buckets.take(key):
            raise TooMany(wait)


def _key(scope: Scope, principal: Principal | None) -> str:
    """The key under which requests are counted: the user, or else the address."""
    return peer_of(scope).key if principal is None else f"user {principal.user}"


def _is_browser(scope: Scope) -> bool:
    """Whether a page is wanted, and not a problem document."""
    wanted = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return bool(scope["method"] == "GET" and b"text/html" in wanted)
