"""A small application behind the real gate: asked in memory as any peer, or over real sockets."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn

from tocsin.app.app import App
from tocsin.serve.identity import asgi
from tocsin.serve.identity.peer import KEY, Peer
from tocsin.serve.identity.protocol import uvicorn_options
from tocsin.serve.identity.setup import secured
from tocsin.serve.principal import Principal, Role

LOCAL = Peer(address="127.0.0.1")
FAR = Peer(address="192.0.2.7")
FAR_TLS = Peer(address="192.0.2.7", tls=True)
URL = "http://127.0.0.1:8642"
ANN = Principal("ann", Role.OPERATOR, "socket")


async def echo(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
    """Says who is asking and how much was sent; `/api/v1/events` streams."""
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
    if scope["path"] == "/api/v1/events":
        await _stream(send)
        return
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    principal: Principal | None = scope.get("state", {}).get("principal")
    who = principal and {"user": principal.user, "role": principal.role.name, "method": principal.method}
    document = {"who": who, "path": scope["path"], "body": size}
    await asgi.answer(send, 200, json.dumps(document).encode(), "application/json")


async def _stream(send: asgi.Send) -> None:
    start = {
        "type": "http.response.start",
        "status": 200,
        "headers": [(b"content-type", b"text/event-stream")],
    }
    await send(start)
    for number in range(4):
        await send({"type": "http.response.body", "body": b"data: %d\n\n" % number, "more_body": True})
        await asyncio.sleep(0.2)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def application(folder: Path, settings: str = "") -> App:
    """An App on a home of its own, with these lines in `[service]` or further sections."""
    folder.mkdir(exist_ok=True)
    file = folder / "tocsin.toml"
    file.write_text(f"[service]\n{settings}\n")
    return App(str(file), str(folder / "home"), {"HOME": str(folder)})


def gated(app: App, *, demo: bool = False, inner: asgi.App = echo) -> asgi.App:
    return secured(inner, app, url=URL, demo=demo)


def ask(
    app: asgi.App,
    path: str = "/api/v1/me",
    *,
    method: str = "GET",
    peer: Peer = LOCAL,
    headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
    **request: Any,
) -> httpx2.Response:
    """The answer to a request of this peer, without a network."""

    async def with_peer(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        scope[KEY] = peer
        await app(scope, receive, send)

    async def send() -> httpx2.Response:
        transport = httpx2.ASGITransport(with_peer)  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url=URL, trust_env=False) as client:
            return await client.request(method, path, headers=headers, **request)

    return asyncio.run(send())


def who(response: httpx2.Response) -> tuple[str, str, str]:
    assert response.status_code == 200, response.text
    found = response.json()["who"]
    return found["user"], found["role"], found["method"]


@contextmanager
def serving(app: asgi.App, path: Path | None = None, **options: Any) -> Iterator[str]:
    """A real uvicorn in a thread, on a unix socket or on a free port; yields its URL."""
    config = uvicorn.Config(
        app, uds=str(path) if path else None, host="127.0.0.1", port=0, log_config=None, **uvicorn_options(), **options
    )  # fmt: skip
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started:
        assert thread.is_alive(), "the server ended while it was starting"
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        scheme = "https" if config.is_ssl else "http"
        yield (
            "http://tocsin"
            if path
            else f"{scheme}://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        )
    finally:
        server.should_exit = True
        thread.join(timeout=20)


def connection(url: str) -> socket.socket:
    """A raw connection to a served URL."""
    parts = httpx2.URL(url)
    made = socket.create_connection((parts.host, parts.port or 80), timeout=30)
    made.settimeout(30)
    return made


def until_closed(connection: socket.socket) -> bytes:
    """All that the server still sends; returns when it has closed the connection."""
    found = b""
    while True:
        try:
            data = connection.recv(65_536)
        except ConnectionResetError:
            return found
        if not data:
            return found
        found += data
