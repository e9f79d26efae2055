"""The service in tests: in this process with anybody as the one who asks, or as a real process with its socket."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.service import Service, ServiceRequest
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.factory import routes
from tocsin.serve.metrics import Measured, Metrics
from tocsin.serve.principal import Principal, Role

_RUN = "from tocsin.cli.main import run; run()"
OPERATOR = Principal("olga", Role.OPERATOR, "test")


class As:
    """Takes everybody for this principal."""

    def __init__(self, app: ASGIApp, principal: Principal) -> None:
        self.app, self.principal = app, principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["principal"] = self.principal
        await self.app(scope, receive, send)


@dataclass
class Served:
    """A service in this process, and its application with all routes."""

    service: Service
    metrics: Metrics
    broadcast: Broadcast
    inner: Any
    clients: list[TestClient] = field(default_factory=list)

    def client(self, principal: Principal = OPERATOR) -> TestClient:
        app = Measured(As(self.inner, principal), self.metrics)
        return TestClient(app, raise_server_exceptions=False)


@contextmanager
def serving(
    home: Path, *, learns: bool = False, environ: Mapping[str, str] | None = None, **request: Any
) -> Iterator[Served]:
    """A service on this home; by default it neither watches nor retrains by itself."""
    settings = {
        "HOME": str(home.parent),
        "TZ": "UTC",
        "PATH": os.environ["PATH"],
        "TOCSIN_LEARN__IN_SERVICE": str(learns).lower(),
        **(environ or {}),
    }
    with App(folder=str(home), environ=settings) as app:
        metrics, broadcast = Metrics(), Broadcast(app)
        service = Service(app, ServiceRequest(**{"watch": False, **request}), Output(lambda _: None))
        metrics.watch(service, lambda: broadcast.clients)
        service.start()
        try:
            wait_until(lambda: all(state.reason() is None for state in service.states))
            yield Served(service, metrics, broadcast, routes(service, broadcast, metrics))
        finally:
            service.stop()


def wait_until(condition: Any, seconds: float = 120.0) -> None:
    """Until it holds; an event of another thread or process that cannot be awaited otherwise."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} did not hold within {seconds} s")
        time.sleep(0.02)


class Process:
    """`tocsin serve` as a process of its own."""

    def __init__(self, home: Path, *arguments: str, environ: dict[str, str] | None = None) -> None:
        self.home = home
        self.output = home.parent / f"{home.name}.out"
        with self.output.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _RUN, "--home", str(home), "serve", *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "TOCSIN_SERVICE__LISTEN": "127.0.0.1:0",
                    "HOME": str(home.parent),
                    "PYTHONUNBUFFERED": "1",
                    **(environ or {}),
                },
            )

    @property
    def socket(self) -> Path:
        return self.home / "run" / "tocsin.sock"

    @property
    def text(self) -> str:
        return self.output.read_text("utf-8")

    @property
    def port(self) -> int:
        return int(self.text.rpartition("http://127.0.0.1:")[2].split()[0].rstrip(";"))

    def ready(self, seconds: float = 180.0) -> "Process":
        def answers() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(f"the service ended: {self.text}")
            return self.socket.exists() and self.ask("/readyz")[0] == 200

        wait_until(answers, seconds)
        return self

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
        """The status and body of a reply on the unix socket; 0 if nobody answers."""
        connection = http.client.HTTPConnection("localhost", timeout=60)
        try:
            connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.sock.settimeout(60)
            connection.sock.connect(str(self.socket))
            text = None if body is None else json.dumps(body).encode()
            connection.request(method, path, text, {"Content-Type": "application/json", **headers})
            reply = connection.getresponse()
            return reply.status, reply.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, body = self.ask(path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def events(self, last: str | None = None) -> Iterator[dict[str, str]]:
        """Server-sent events until the stream ends or the caller stops."""
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.settimeout(60)
            connection.connect(str(self.socket))
            resume = f"Last-Event-ID: {last}\r\n" if last else ""
            connection.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\n{resume}\r\n".encode())
            reply = http.client.HTTPResponse(connection)
            reply.begin()
            assert reply.status == 200
            event: dict[str, str] = {}
            for raw in reply:
                line = raw.decode().rstrip("\n")
                if not line and "data" in event:
                    yield event
                    event = {}
                name, _, value = line.partition(": ")
                if name:
                    event[name] = value

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(signal.SIGKILL)
