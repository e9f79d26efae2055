"""The relay of a login node: takes requests on a unix socket, and forwards each on behalf of its user."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2

from tocsin.core.errors import SettingsError, Unauthenticated
from tocsin.serve.identity.asgi import App, Receive, Scope, Send, problem, refuse, while_connected
from tocsin.serve.identity.authenticators import user_of
from tocsin.serve.identity.limits import BodyLimit, Deadline
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.relay_signature import SIGNATURE, USER, sign
from tocsin.serve.identity.request import Request
from tocsin.serve.identity.turns import Turns

__all__ = ["Relay", "relay_app"]

_FORWARDED = frozenset(
    {b"accept", b"accept-encoding", b"content-type", b"content-length", b"if-none-match", b"last-event-id", b"user-agent"}
)  # fmt: skip
"""Headers that are forwarded; the client's own credentials and all other headers are not."""
_NOT_RETURNED = frozenset({"connection", "keep-alive", "transfer-encoding", "set-cookie", "server"})
_CONNECT_SECONDS = 3.0
_MOST_AT_ONCE = 16
"""Requests of one user in progress, event streams included; further ones wait."""
_LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=20)
"""Fewer than the service takes from one address."""
_BEAT_SECONDS = 1.0
"""Interval and timeout of health checks of the service: the hooks in Slurm trust a heartbeat for 3 s."""


class Relay:
    """Forwards to the service at `url`. The kernel identifies the user; the relay signs the name with its token.

    `beat` is called once a second while the service answers: it writes the login node's heartbeat.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        ca_file: str | None = None,
        now: Callable[[], float] = time.time,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._url, self._token, self._now, self._beat = _checked(url), token, now, beat
        self._context = ssl.create_default_context(cafile=ca_file) if url.startswith("https:") else None
        self._client: httpx2.AsyncClient | None = None
        self._turns = Turns(_MOST_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                await self._forward(Request.of(scope), scope, receive, send)
            except Unauthenticated as error:
                await refuse(send, error)

    async def _live(self, receive: Receive, send: Send) -> None:
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)  # the whole request has a deadline
        verify = self._context if self._context is not None else True
        async with (
            httpx2.AsyncClient(
                trust_env=False, timeout=timeout, verify=verify, limits=_LIMITS
            ) as self._client,
            # The heartbeat never waits for a connection that users have taken.
            httpx2.AsyncClient(trust_env=False, timeout=timeout, verify=verify) as own,
        ):
            beating = asyncio.create_task(self._keep_beating(own))
            while (kind := (await receive())["type"]) != "lifespan.shutdown":
                await send({"type": f"{kind}.complete"})
            beating.cancel()
        await send({"type": "lifespan.shutdown.complete"})

    async def _keep_beating(self, client: httpx2.AsyncClient) -> None:
        """Runs in the loop that forwards, so that neither a hanging relay nor a hanging service has a heartbeat."""
        while True:
            with suppress(httpx2.HTTPError):
                reply = await client.get(f"{self._url}/healthz", timeout=_BEAT_SECONDS)
                if reply.status_code == 200:
                    self._beat()
            await asyncio.sleep(_BEAT_SECONDS)

    async def _forward(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        if request.peer.uid is None or self._client is None:
            raise Unauthenticated("a relay accepts requests only on its unix socket")
        user = await asyncio.to_thread(user_of, request.peer.uid)
        async with self._turns.turn(user):
            body = _body(scope, receive)
            reply = self._forward_for(user, request, scope, body, send, self._client)
            if body is not None:
                await reply
            else:  # it may be an event stream, which would go on without its client
                await while_connected(receive, reply)

    async def _forward_for(
        self,
        user: str,
        request: Request,
        scope: Scope,
        body: AsyncIterator[bytes] | None,
        send: Send,
        client: httpx2.AsyncClient,
    ) -> None:
        line = {"user": user, "method": request.method, "target": request.target}
        headers = [(name, value) for name, value in scope["headers"] if name in _FORWARDED]
        headers += [
            (b"authorization", f"Bearer {self._token}".encode()),
            (USER.encode(), user.encode()),
            (SIGNATURE.encode(), sign(self._token, at=int(self._now()), **line).encode()),
        ]
        started = False
        try:
            async with client.stream(
                request.method, self._url + request.target, headers=headers, content=body
            ) as reply:
                kept = [(n, v) for n, v in reply.headers.raw if n.decode().lower() not in _NOT_RETURNED]
                await send({"type": "http.response.start", "status": reply.status_code, "headers": kept})
                started = True
                async for chunk in reply.aiter_raw():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except httpx2.HTTPError as error:
            if started:
                raise  # the service's reply was cut off, and so is ours
            reason = f"the service at {self._url} does not answer the relay ({type(error).__name__})"
            await problem(send, 502, f"{reason}; is tocsin serve running there?")
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def relay_app(relay: Relay, *, body_megabytes: int, seconds: float) -> App:
    """The relay with its limits."""
    return Deadline(BodyLimit(relay, body_megabytes << 20), seconds)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    try:
        loopback = parts.hostname == "localhost" or Peer(address=parts.hostname).loopback
    except ValueError:
        loopback = False
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
        raise SettingsError(f'"{url}" is not the address of a service; write https://host:8642')
    if parts.scheme != "https" and not loopback:
        raise SettingsError(
            f'"{url}" would send the relay\'s token over a network in the clear; use https://, or a tunnel to 127.0.0.1'
        )
    return url.rstrip("/")


def _body(scope: Scope, receive: Receive) -> AsyncIterator[bytes] | None:
    names = {name for name, _ in scope["headers"]}
    if not names & {b"content-length", b"transfer-encoding"}:
        return None

    async def chunks() -> AsyncIterator[bytes]:
        while True:
            message = await receive()
            if (
                message["type"] == "http.disconnect"
            ):  # the service must not take what came so far for the whole
                raise httpx2.WriteError("the client has gone")
            yield message.get("body", b"")
            if not message.get("more_body"):
                return

    return chunks()
