"""Limits on one request: the size of its body, and the time from its first byte to its last."""

import asyncio
from contextlib import suppress

from tocsin.serve.identity.asgi import App, Message, Receive, Scope, Send, problem
from tocsin.serve.identity.protocol import ABORT

__all__ = ["BodyLimit", "Deadline"]

_CLOSE = [(b"connection", b"close")]


class _TooLarge(Exception):
    """The body exceeded the limit while it was read."""


class BodyLimit:
    """Answers 413 as soon as a body exceeds the limit or announces that it will."""

    def __init__(self, app: App, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        too_large = not (declared.isdigit() and len(declared) < 16) or int(declared) > self._most
        size, started = 0, False

        async def bounded() -> Message:
            nonlocal size, too_large
            message = await receive()
            size += len(message.get("body", b""))
            too_large = size > self._most
            if too_large:
                raise _TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            if too_large and not started:
                return  # the framework's own answer to the truncated body
            started = True
            await send(message)

        if not too_large:
            with suppress(_TooLarge):
                await self._app(scope, bounded, noted)
        if too_large and not started:
            detail = f"the body is larger than {self._most >> 20} MiB, the limit of this service"
            await problem(send, 413, detail, _CLOSE)


class Deadline:
    """Aborts a request after some seconds, however slowly it is sent or read.

    Event streams are exempt; there the limit applies to each event, which a client must take in time.
    """

    def __init__(self, app: App, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, cut = False, False

        async def timed(message: Message) -> None:
            nonlocal started, cut
            if message["type"] == "http.response.start":
                started = True
                if _is_stream(message):
                    limit.reschedule(None)
            if limit.when() is not None:
                await send(message)
                return
            try:
                async with asyncio.timeout(self._seconds):
                    await send(message)
            except TimeoutError:
                cut = True
                raise

        try:
            async with asyncio.timeout(self._seconds) as limit:
                await self._app(scope, receive, timed)
        except TimeoutError:
            if not cut and not limit.expired():
                raise  # raised by the application itself
            if started:
                scope.get(ABORT, _nothing)()
            else:
                await problem(send, 408, f"the request was not complete after {self._seconds:g} s", _CLOSE)


def _nothing() -> None:
    """For a server that cannot abort a connection."""


def _is_stream(message: Message) -> bool:
    kinds = (value for name, value in message.get("headers", []) if name.lower() == b"content-type")
    return any(kind.startswith(b"text/event-stream") for kind in kinds)
