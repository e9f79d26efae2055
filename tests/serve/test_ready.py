"""Readiness: a slurmrestd that misbehaves is survived, and /readyz names the reason and the remedy."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
from starlette.testclient import TestClient

from tests.kits.service import As, wait_until
from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.service import Service, ServiceRequest
from tocsin.core.errors import StoreError
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.factory import routes
from tocsin.serve.metrics import Metrics
from tocsin.serve.principal import Principal, Role
from tocsin.store.jobs import cluster_names

REPLIES = {
    "500": (500, b"", "HTTP 500"),
    "511": (511, b"", "HTTP 511"),
    "errors": (200, b'{"errors": [{"error_number": 1, "error": "slurmctld is tired"}]}', "slurm"),
    "garbage": (200, b"<html>not json", "slurm"),
    "slow": (200, b"", "does not answer"),
}


@contextmanager
def broken_slurmrestd(kind: str) -> Iterator[str]:
    """A fake: no real slurmrestd can be made to fail on purpose in each of these ways."""
    status, body, _ = REPLIES[kind]
    ended = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if kind == "slow":
                ended.wait(30)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def watching(home: Path, url: str) -> Iterator[tuple[Service, TestClient]]:
    token = home.parent / "token"
    token.write_text("x.y.z")
    token.chmod(0o600)
    environ = {
        "HOME": str(home.parent),
        "PATH": os.environ["PATH"],
        "TOCSIN_CLUSTER__lab__REST_URL": url,
        "TOCSIN_CLUSTER__lab__REST_TOKEN_FILE": str(token),
        "TOCSIN_CLUSTER__lab__TIMEOUT": "1",
        "TOCSIN_WATCH__INTERVAL": "1",
        "TOCSIN_WATCH__SCRIPTS": "false",
    }
    with App(folder=str(home), environ=environ) as app:
        broadcast, metrics = Broadcast(app), Metrics()
        service = Service(app, ServiceRequest(), Output(lambda _: None))
        metrics.watch(service, lambda: 0)
        service.start()
        try:
            operator = Principal("olga", Role.OPERATOR, "test")
            yield service, TestClient(As(routes(service, broadcast, metrics), operator))
        finally:
            service.stop()


@pytest.mark.parametrize("kind", REPLIES)
def test_a_broken_slurmrestd_is_survived_and_reported(kind: str, tmp_path: Path) -> None:
    with broken_slurmrestd(kind) as url, watching(tmp_path / "home", url) as (service, client):
        wait_until(lambda: service.states[0].problem)
        reply = client.get("/readyz")
        assert reply.status_code == 503
        reason = next(each for each in reply.json()["reasons"] if each["part"] == "cluster lab")
        assert not reason["ready"]
        assert REPLIES[kind][2] in reason["text"]
        assert "tocsin doctor" in reason["remedy"]
        assert client.get("/healthz").status_code == 200
        assert client.get("/api/v1/health").status_code == 200
        assert client.get("/api/v1/jobs").json() == {"jobs": [], "next": None}
        assert 'tocsin_watch_up{cluster="lab"} 0.0' in client.get("/metrics").text


def test_a_store_that_does_not_answer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_: object) -> list[str]:
        raise StoreError("the store was locked by another process for 30 s")

    with broken_slurmrestd("500") as url, watching(tmp_path / "home", url) as (_, client):
        began = time.monotonic()
        monkeypatch.setattr("tocsin.store.jobs.cluster_names", locked)
        reply = client.get("/readyz")
        assert reply.status_code == 503
        [reason] = reply.json()["reasons"]
        assert reason["part"] == "store"
        assert reason["remedy"]
        assert time.monotonic() - began < 60
    assert cluster_names
