"""One client's stream of server-sent events, starting at a position in the store."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tocsin.app.feed import position_text
from tocsin.core.errors import StoreError
from tocsin.serve.broadcast import Broadcast, Sent
from tocsin.serve.identity.asgi import while_connected
from tocsin.serve.identity.protocol import ABORT
from tocsin.serve.principal import Principal
from tocsin.serve.visible import visible

__all__ = ["EventStream"]

ALIVE_EVERY = 15.0
"""Seconds without an event after which a comment is sent, so that proxies keep the connection open."""
STALLED = 20.0
"""Seconds that a client may take for one event; then it is disconnected, and its queue is dropped."""

LONGEST = 600.0
"""Seconds after which a stream ends. Its client resumes at once and is identified again: a revoked token, an ended
session or a lost role must not keep what it had."""


class EventStream(Response):
    """Sends first what the store has after the position, then new events.

    It listens before it reads the store, so nothing is missed; events read from the store are not sent again.
    """

    media_type = "text/event-stream"

    def __init__(self, broadcast: Broadcast, asker: Principal, position: Any) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._broadcast, self._asker, self._position = broadcast, asker, position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            with suppress(StoreError):  # locked or unreachable: the stream is cut off, and its client resumes
                await while_connected(receive, self._events(send))
        except TimeoutError:
            scope.get(ABORT, _nothing)()  # closing it would wait until the client reads

    async def _events(self, send: Send) -> None:
        async def write(text: str, *, more: bool = True) -> None:
            async with asyncio.timeout(STALLED):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        now = asyncio.get_running_loop().time
        end = now() + LONGEST
        with self._broadcast.listening() as listener:
            await write(f"retry: 2000\n{self._id()}\n")  # a client without any event resumes from here, too
            await self._broadcast.begin()
            async for event in self._stored():
                await self._write(write, event)
                if now() > end:  # a slow client could make the past last for ever
                    break
            while not listener.lost and (left := end - now()) > 0:
                fresh = await listener.get(min(ALIVE_EVERY, left))
                if fresh is not None:
                    await self._write(write, fresh)
                elif not listener.lost:
                    await write(": alive\n\n")
            await write(f"{self._id()}\n", more=False)

    async def _stored(self) -> AsyncIterator[Sent]:
        """What the store has after the position, which moves on with each event that is sent."""
        while stored := await asyncio.to_thread(self._broadcast.after, self._position):
            for event in stored:
                yield event

    async def _write(self, write: Any, event: Sent) -> None:
        number = getattr(event.position, event.kind)
        if number <= getattr(self._position, event.kind):
            return  # already read from the store
        self._position = self._position._replace(**{event.kind: number})
        if (document := self._shown(event)) is not None:
            data = json.dumps(document, separators=(",", ":"))
            await write(f"{self._id()}event: {event.kind}\ndata: {data}\n\n")

    def _id(self) -> str:
        """The line by which the client knows where to resume."""
        return f"id: {position_text(self._position)}\n"

    def _shown(self, event: Sent) -> dict[str, Any] | None:
        if event.kind == "case":
            return event.document if self._asker.is_operator else None
        return (
            visible(event.document, self._asker) if self._asker.may_see(event.document.get("user")) else None
        )


def _nothing() -> None:
    """For a server that cannot abort a connection."""
