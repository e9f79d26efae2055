"""A user who opens many connections, streams or requests delays nobody else."""

import asyncio
import http.client
import json
import os
import socket
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import LOCAL, URL, ask, connection, gated, serving, until_closed
from tests.serve.identity.test_socket import asked_by, needs_root, path
from tests.serve.identity.test_tokens import bearer
from tocsin.app.app import App
from tocsin.serve.identity import asgi, protocol
from tocsin.serve.identity.gate import MOST_AT_ONCE, MOST_STREAMS
from tocsin.serve.identity.peer import KEY
from tocsin.serve.identity.relay import Relay, relay_app

__all__ = ["path"]  # a fixture

PYTHON = "/usr/bin/python3"


class Slow:
    """An application that answers requests for `/api/v1/check` and `/api/v1/events` only once it is told to."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.open = Counter[str]()
        self.most = Counter[str]()
        """By user, the requests in progress, and the most of them at any time."""
        self.first = threading.Event()

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})
            return
        who = scope["state"]["principal"]
        user = who.user if who else ""
        self.open[user] += 1
        self.most[user] = max(self.most[user], self.open[user])
        if scope["path"] in ("/api/v1/check", "/api/v1/events"):
            self.first.set()
            while not self.go.is_set():
                await asyncio.sleep(0.005)
        document = {"who": who and {"user": who.user, "role": who.role.name, "method": who.method}}
        self.open[user] -= 1
        await asgi.answer(send, 200, json.dumps(document).encode(), "application/json")


def requests(
    gate: asgi.App, inner: Slow, token: str, path: str, number: int, other: str, *, settled: int
) -> list[int]:
    """The statuses of many requests of ann; when so many are in progress or refused, another user's is answered."""

    async def with_peer(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        scope[KEY] = LOCAL
        await gate(scope, receive, send)

    async def run() -> list[int]:
        transport = httpx2.ASGITransport(with_peer)  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url=URL, trust_env=False) as client:
            method = "GET" if path.endswith("events") else "POST"
            tasks = [
                asyncio.create_task(client.request(method, path, headers=bearer(token)))
                for _ in range(number)
            ]
            while inner.open["ann"] + sum(task.done() for task in tasks) < settled:
                await asyncio.sleep(0)
            assert (await client.get("/api/v1/me", headers=bearer(other))).status_code == 200
            inner.go.set()
            return [reply.status_code for reply in await asyncio.gather(*tasks)]

    return asyncio.run(run())


def test_of_one_users_flood_few_requests_are_in_progress_and_all_are_answered(app: App) -> None:
    inner = Slow()
    tokens = [new_token(app, name) for name in ("ann", "bob")]
    gate = gated(app, inner=inner)
    statuses = requests(gate, inner, tokens[0], "/api/v1/check", 60, tokens[1], settled=MOST_AT_ONCE)
    assert inner.most["ann"] == MOST_AT_ONCE
    assert statuses == [200] * 60


def test_a_user_has_a_limited_number_of_event_streams(app: App) -> None:
    inner = Slow()
    tokens = [new_token(app, name) for name in ("ann", "bob")]
    number = MOST_STREAMS + 20
    gate = gated(app, inner=inner)
    statuses = requests(gate, inner, tokens[0], "/api/v1/events", number, tokens[1], settled=number)
    assert Counter(statuses) == {200: MOST_STREAMS, 429: 20}
    assert ask(gated(app, inner=inner), "/api/v1/events", headers=bearer(tokens[0])).status_code == 200


def status(client: socket.socket, line: bytes) -> int:
    client.sendall(line)
    answer = http.client.HTTPResponse(client)
    answer.begin()
    answer.read()
    return answer.status


def test_one_address_has_a_limited_number_of_connections(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MOST_CONNECTIONS", 5)
    line = f"GET /api/v1/me HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {new_token(app)}\r\n\r\n".encode()
    with serving(gated(app)) as url, ExitStack() as opened:
        clients = [opened.enter_context(connection(url)) for _ in range(5)]
        assert [status(client, line) for client in clients] == [200] * 5
        with connection(url) as sixth:
            assert until_closed(sixth) == b""
        assert status(clients[0], line) == 200, "those that are open stay open"


def test_the_heartbeat_of_a_relay_does_not_depend_on_what_its_users_send(make_app: MakeApp) -> None:
    gate = gated(make_app("requests_per_minute = 6"))
    assert {ask(gate, "/nothing").status_code for _ in range(5)} == {404, 429}
    assert {ask(gate, "/healthz").status_code for _ in range(5)} == {200}


def test_streams_whose_clients_have_left_a_relay_take_no_turn(make_app: MakeApp, path: Path) -> None:
    inner, app = Slow(), make_app("request_seconds = 600")
    token = new_token(app, "login1", relay=True)
    with (
        serving(gated(app, inner=inner)) as url,
        serving(relay_app(Relay(url, token), body_megabytes=4, seconds=600), path, lifespan="on"),
    ):
        for _ in range(MOST_AT_ONCE + 1):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(os.fspath(path))
                client.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.fspath(path))
            client.settimeout(20)
            try:
                assert status(client, b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n") == 200
            finally:
                inner.go.set()


def test_the_heartbeat_does_not_wait_for_other_requests_from_its_address(app: App) -> None:
    """Somebody on the login node who sends the head of a login and never its body."""
    gate = gated(app)
    sent = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        await sent.wait()
        yield b"x"

    async def with_peer(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        scope[KEY] = LOCAL
        await gate(scope, receive, send)

    async def run() -> None:
        transport = httpx2.ASGITransport(with_peer)  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url=URL, trust_env=False) as client:
            logins = [
                asyncio.create_task(client.post("/login", content=body(), headers={"Origin": URL}))
                for _ in range(MOST_AT_ONCE + 1)
            ]
            await asyncio.sleep(0)
            beat = await asyncio.wait_for(client.get("/healthz"), 10)
            assert beat.status_code == 200
            assert not any(login.done() for login in logins)
            sent.set()
            await asyncio.gather(*logins)

    asyncio.run(run())


@needs_root
def test_one_user_of_a_login_node_does_not_take_all_connections_of_its_relay(app: App, path: Path) -> None:
    if not Path(PYTHON).exists():
        pytest.skip(f"there is no {PYTHON}, which every user may run")
    inner = Slow()
    token = new_token(app, "login1", relay=True)
    with (
        serving(gated(app, inner=inner)) as url,
        serving(relay_app(Relay(url, token), body_megabytes=4, seconds=30), path, lifespan="on"),
        ExitStack() as opened,
    ):
        clients = [opened.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(150)]
        for client in clients:
            client.connect(os.fspath(path))
            client.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert inner.first.wait(30)
        assert asked_by("nobody", path, PYTHON)["user"] == "nobody"
        inner.go.set()
        assert {until_closed(client).partition(b"\r\n")[0] for client in clients} == {b"HTTP/1.1 200 OK"}
