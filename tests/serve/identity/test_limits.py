"""What one client may cost: large bodies, slow heads, slow bodies and slow readers are cut off."""

import asyncio
import http.client
import json
import socket
import threading

import pytest

from tests.serve.identity.conftest import MakeApp, new_token
from tests.serve.identity.kit import ask, connection, gated, serving, until_closed
from tests.serve.identity.test_tokens import bearer
from tocsin.app.app import App
from tocsin.serve.identity import asgi, protocol
from tocsin.serve.identity.limits import BodyLimit, Deadline

HUNDRED_MB = 100 << 20


def head(token: str, *lines: str, method: str = "POST", path: str = "/api/v1/check") -> bytes:
    fixed = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}"]
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


def test_a_body_of_100_mb_is_refused_before_it_is_sent(app: App) -> None:
    with serving(gated(app)) as url, connection(url) as client:
        client.sendall(head(new_token(app), f"Content-Length: {HUNDRED_MB}"))
        assert until_closed(client).startswith(b"HTTP/1.1 413 ")


def test_a_body_without_a_length_is_cut_off_at_the_limit(app: App) -> None:
    sent = 0
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with serving(gated(app)) as url, connection(url) as client:
        client.sendall(head(new_token(app), "Transfer-Encoding: chunked"))
        try:
            while sent < HUNDRED_MB:
                client.sendall(chunk)
                sent += len(chunk)
        except OSError:
            pass
        reply = until_closed(client)
    assert sent < HUNDRED_MB
    assert reply == b"" or reply.startswith(b"HTTP/1.1 413 ")  # the kernel drops the answer if we still send


def test_a_body_at_the_limit_is_taken_and_a_byte_more_is_not(make_app: MakeApp) -> None:
    app = make_app("max_body_megabytes = 1")
    token = bearer(new_token(app))

    def status(size: int) -> int:
        return ask(gated(app), "/api/v1/check", method="POST", headers=token, content=b"x" * size).status_code

    assert (status(1 << 20), status((1 << 20) + 1)) == (200, 413)


@pytest.mark.parametrize("length", ["-1", "1e9", "9" * 40, "x"])
def test_a_length_that_is_none_is_refused(length: str) -> None:
    async def never(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        raise AssertionError("the body was read")

    sent = list[asgi.Message]()

    async def send(message: asgi.Message) -> None:
        sent.append(message)

    async def receive() -> asgi.Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "headers": [(b"content-length", length.encode())]}
    asyncio.run(BodyLimit(never, 100)(scope, receive, send))
    assert sent[0]["status"] == 413


def test_a_framework_that_hides_the_overflow_still_answers_413() -> None:
    async def hiding(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        try:
            await receive()
        except Exception:
            await asgi.answer(send, 400, b"bad body", "text/plain")

    reply = ask(BodyLimit(hiding, 10), method="POST", content=iter_bytes(b"x" * 11))
    assert reply.status_code == 413


async def iter_bytes(data: bytes):  # type: ignore[no-untyped-def]
    yield data


def drip(client: socket.socket, data: bytes) -> bytes:
    """Send a byte every tenth of a second until the server closes; what it answered."""
    over = threading.Event()

    def send() -> None:
        for byte in data:
            try:
                client.sendall(bytes([byte]))
            except OSError:
                return
            if over.wait(0.1):
                return

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    try:
        return until_closed(client)
    finally:
        over.set()
        sender.join()


@pytest.mark.parametrize("before", ["nothing", "a request"])
def test_a_client_that_drips_the_head_of_a_request_is_cut_off(
    app: App, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 2)
    token = new_token(app)
    whole = head(token, "X-Long: " + "y" * 200, method="GET", path="/api/v1/me")
    with serving(gated(app)) as url, connection(url) as client:
        if before == "a request":
            client.sendall(head(token, method="GET", path="/api/v1/me"))
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert (answer.status, bool(answer.read())) == (200, True)
        assert drip(client, whole) == b"", "it was cut off before the whole head had arrived"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /api/v1/jobs\r\n\r\n",
        b"GET /api/v1/jobs HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["0.9", "no host", "not ASCII", "negative length", "broken chunk", "TLS"],
)
def test_what_is_not_http_is_answered_by_a_problem(
    app: App, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(gated(app)) as url, connection(url) as client:
        client.sendall(sent)
        top, _, body = until_closed(client).partition(b"\r\n\r\n")
    assert top.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in top
    assert json.loads(body)["status"] == 400
    assert not [record for record in caplog.records if record.exc_info], "no traceback for what others send"


def test_a_connection_that_says_nothing_is_cut_off(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.3)
    with serving(gated(app)) as url, connection(url) as client:
        assert until_closed(client) == b""


def test_a_client_that_drips_its_body_is_answered_and_cut_off(make_app: MakeApp) -> None:
    app = make_app("request_seconds = 1")
    with serving(gated(app)) as url, connection(url) as client:
        client.sendall(head(new_token(app), "Content-Length: 100000"))
        client.sendall(b"x")
        assert until_closed(client).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_does_not_read_is_cut_off() -> None:
    ended = threading.Event()

    async def large(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        if scope["type"] != "http":
            return
        try:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})
        finally:
            ended.set()

    with serving(Deadline(large, 0.5), lifespan="off") as url, connection(url) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended.wait(20)
        # What fills our buffer is there; then the connection is reset instead of ended in order.
        assert not until_closed(client).endswith(b"0\r\n\r\n")


def test_an_event_stream_may_last_longer_than_a_request(make_app: MakeApp) -> None:
    app = make_app()
    inner = gated(app)
    reply = ask(Deadline(inner, 0.3), "/api/v1/events", headers=bearer(new_token(app)))
    assert reply.text.count("data:") == 4


def test_the_time_limit_leaves_errors_of_the_application_alone() -> None:
    async def broken(scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        raise TimeoutError("a database")

    with pytest.raises(TimeoutError, match="a database"):
        ask(Deadline(broken, 5))


def test_a_head_without_end_is_refused(app: App) -> None:
    with serving(gated(app)) as url, connection(url) as client:
        client.sendall(b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 60_000)
        assert until_closed(client).startswith(b"HTTP/1.1 400 ")


def test_many_slow_clients_do_not_keep_others_waiting(app: App) -> None:
    token = new_token(app)
    with serving(gated(app)) as url:
        slow = [connection(url) for _ in range(50)]
        for client in slow:
            client.sendall(b"GET /api/v1/me HT")
        with connection(url) as client:
            client.sendall(head(token, method="GET", path="/api/v1/me"))
            answer = http.client.HTTPResponse(client)
            answer.begin()
            assert (answer.status, bool(answer.read())) == (200, True)
        for client in slow:
            client.close()
