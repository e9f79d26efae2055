"""uvicorn's HTTP protocol, with the peer of each connection and a deadline for the head of each request."""

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tocsin.serve.identity.asgi import PROBLEM, Receive, Scope, Send, document
from tocsin.serve.identity.peer import KEY, Peer

__all__ = ["ABORT", "HEAD_SECONDS", "PeerProtocol", "uvicorn_options"]

ABORT = "tocsin.abort"
"""Where the protocol puts the function that aborts the connection of a request."""
HEAD_SECONDS = 10.0
MOST_CONNECTIONS = 256
"""Open connections of one user on the socket, or of one address: each takes a file descriptor of the process."""
_NOT_HTTP = "this is not a valid HTTP/1.1 request; check its address, its headers and the length of its body"
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class PeerProtocol(H11Protocol):
    """Adds what uvicorn lacks: the peer on a unix socket, and a deadline for the head of a request."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._inner, self.app = self.app, self._with_peer
        self._peer = Peer()
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._peer = _peer(transport)
        same = sum(isinstance(each, PeerProtocol) and each._peer == self._peer for each in self.connections)
        if same > MOST_CONNECTIONS:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if not self._answering():
            self._await_head()
        super().data_received(data)
        if self._answering():
            self._head_arrived()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._head_arrived()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn's has no next step
        """Answer invalid HTTP with a problem document, too; a reply that has begun is cut off."""
        if self._answering():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = document(400, _NOT_HTTP, "bad-input")
            headers = [
                (b"content-type", PROBLEM.encode()),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body)):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        """Counted from the first byte; later bytes do not extend it."""
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    async def _with_peer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[KEY], scope[ABORT] = self._peer, self.transport.abort
        await self._inner(scope, receive, send)


def _peer(transport: asyncio.BaseTransport) -> Peer:
    tls = transport.get_extra_info("sslcontext") is not None
    connection = transport.get_extra_info("socket")
    if connection.family == socket.AF_UNIX:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        return Peer(uid=_CREDENTIALS.unpack(raw)[1], tls=tls)
    return Peer(address=str(connection.getpeername()[0]), tls=tls)


def uvicorn_options() -> dict[str, Any]:
    """The options of uvicorn on which `Identification` relies.

    Its handling of `X-Forwarded-…` is off, since every user of this host could send them from 127.0.0.1, and so is its
    access log, since URLs may hold one-time codes.
    """
    return {
        "http": PeerProtocol,
        "ws": "none",
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
        "timeout_keep_alive": 30,
        "h11_max_incomplete_event_size": 32_768,
    }
