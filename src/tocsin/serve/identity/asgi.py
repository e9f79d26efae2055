"""The types of ASGI, and replies that need no framework."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from http import HTTPStatus
from typing import Any

from tocsin.core.errors import TocsinError
from tocsin.core.problems import PREFIX, kind_of

__all__ = [
    "PROBLEM",
    "App",
    "Message",
    "Receive",
    "Scope",
    "Send",
    "answer",
    "document",
    "problem",
    "refuse",
    "while_connected",
]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]
PROBLEM = "application/problem+json"


async def answer(
    send: Send, status: int, body: bytes, content_type: str, headers: list[Header] | None = None
) -> None:
    """A whole reply."""
    start = [
        (b"content-type", content_type.encode("latin-1")),
        (b"content-length", str(len(body)).encode("ascii")),
        *(headers or []),
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def problem(
    send: Send, status: int, detail: str, headers: list[Header] | None = None, *, kind: str = ""
) -> None:
    """Send an error as a problem document (RFC 9457)."""
    await answer(send, status, document(status, detail, kind), PROBLEM, headers)


def document(status: int, detail: str, kind: str = "") -> bytes:
    """The body of a problem."""
    found = {
        "type": f"{PREFIX}{kind}" if kind else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return json.dumps(found).encode()


async def refuse(send: Send, error: TocsinError, headers: list[Header] | None = None) -> None:
    """Send an exception as a problem document."""
    kind, status = kind_of(error)
    await problem(send, status, str(error), headers, kind=kind)


async def while_connected(receive: Receive, reply: Coroutine[Any, Any, None]) -> None:
    """Send a reply to a request without a body until it is whole or its client has left."""
    replying, gone = asyncio.create_task(reply), asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({replying, gone}, return_when=asyncio.FIRST_COMPLETED)
        if replying.done():
            replying.result()  # raises its error
    finally:
        for task in (replying, gone):
            task.cancel()
        await asyncio.gather(replying, gone, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
