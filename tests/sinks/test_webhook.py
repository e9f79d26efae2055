"""Webhook: signed, with an id, tried again when the receiver fails, dropped when it refuses the message."""

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.kits.outbox import message, send, try_to_send, verdict
from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.sink_settings import WebhookSinkSettings
from tocsin.sinks.webhook import WebhookSink


@dataclass
class Receiver:
    """An HTTP server that answers with the statuses that it is given, then 204."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    slow: bool = False
    over: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            state.connections.add(self.client_address)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if state.slow:  # a byte now and then, so that no single read times out
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not state.over.wait(0.1):
                    self.wfile.write(b"X-More: x\r\n")
                return
            state.got.append((dict(self.headers), body))
            self.send_response(state.statuses.pop(0) if state.statuses else 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        state.address = f"http://127.0.0.1:{server.server_port}"
        yield state
        state.over.set()
        server.shutdown()
        thread.join()


def secret(tmp_path: Path, text: str) -> str:
    file = tmp_path / hashlib.sha256(text.encode()).hexdigest()
    file.write_text(text)
    file.chmod(0o600)
    return str(file)


def sink_of(receiver: Receiver, path: str = "/hook", **more: Any) -> WebhookSink:
    settings = {"kind": "webhook", "url": f"{receiver.address}{path}", "timeout": 5, **more}
    return WebhookSink("hook", WebhookSinkSettings(**settings))


def test_a_verdict_is_posted_with_its_id_and_a_signature(receiver: Receiver, tmp_path: Path) -> None:
    sink = sink_of(receiver, secret_file=secret(tmp_path, "sw0rdfish"), token_file=secret(tmp_path, "t0ken"))
    assert send(sink, [message(1), message(2)]) == [1, 2]
    headers, body = receiver.got[0]
    assert json.loads(body) == verdict(1).to_json()
    assert headers["Idempotency-Key"] == verdict(1).to_json()["id"]
    assert (headers["Tocsin-Kind"], headers["Authorization"]) == ("verdict", "Bearer t0ken")
    at, _, sent = headers["Tocsin-Signature"].removeprefix("t=").partition(",v1=")
    assert sent == hmac.new(b"sw0rdfish", at.encode() + b"." + body, "sha256").hexdigest()
    assert len(receiver.connections) == 1  # kept alive
    sink.close()


@pytest.mark.parametrize("status", [500, 503, 429, 408, 401, 404, 301])
def test_a_receiver_that_fails_is_asked_again_with_the_same_id(receiver: Receiver, status: int) -> None:
    sink = sink_of(receiver)
    receiver.statuses = [204, status]
    receipts, problem = try_to_send(sink, [message(1), message(2), message(3)])
    assert problem == f"{receiver.address} answered {status}"
    assert [one.id for receipt in receipts for one in receipt.messages] == [1]
    assert send(sink, [message(2), message(3)]) == [2, 3]
    ids = [headers["Idempotency-Key"] for headers, _ in receiver.got]
    assert ids[1] == ids[2]
    sink.close()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_message_that_is_refused_is_reported_and_the_next_ones_are_sent(
    receiver: Receiver, status: int
) -> None:
    sink = sink_of(receiver)
    receiver.statuses = [status]
    receipts = list(sink.send([message(1), message(2)]))
    assert [receipt.refused for receipt in receipts] == [f"the receiver answered {status}", ""]
    sink.close()


def test_a_receiver_that_dribbles_is_cut_off_at_the_deadline(receiver: Receiver) -> None:
    receiver.slow = True
    sink = sink_of(receiver, timeout=1)
    with pytest.raises(SinkError, match="cannot be reached"):
        send(sink, [message(1)])
    receiver.slow = False
    assert send(sink, [message(1)]) == [1]
    sink.close()


def test_a_secret_in_the_address_is_not_shown(receiver: Receiver, tmp_path: Path) -> None:
    receiver.statuses = [500]
    url = secret(tmp_path, f"{receiver.address}/services/sw0rdfish?token=sw0rdfish")
    sink = sink_of(receiver, url="", url_file=url)
    with pytest.raises(SinkError) as failed:
        send(sink, [message(1)])
    assert "sw0rdfish" not in str(failed.value)
    with pytest.raises(SettingsError) as refused:
        sink_of(receiver, url="ftp://host/sw0rdfish")
    assert "sw0rdfish" not in str(refused.value)
    sink.close()
