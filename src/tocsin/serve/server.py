"""Runs the service: its threads, its unix socket and its port, until a signal or a time limit."""

import asyncio
import resource
import signal
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import uvicorn

from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.service import Service, ServiceRequest
from tocsin.app.service_address import socket_path
from tocsin.app.slurm_hooks import beat_for_hooks
from tocsin.core.errors import SettingsError
from tocsin.core.verdict import Verdict
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.factory import create
from tocsin.serve.identity.protocol import HEAD_SECONDS, PeerProtocol, uvicorn_options
from tocsin.serve.metrics import Metrics
from tocsin.serve.systemd import ALIVE, READY, notify_systemd
from tocsin.serve.tls import tls_context

__all__ = ["run"]

BACKLOG = 512
MOST_FILES = 8192
"""File descriptors, as far as the hard limit permits: the usual soft limit of 1,024 is too low where many connect."""
SWITCH = 0.0005
"""Switch interval of Python threads in seconds. A check releases the GIL some fifty times for its tables, and with
the default of 5 ms each return could wait that long for the watch."""


def run(
    app: App,
    request: ServiceRequest,
    output: Output,
    *,
    seconds: float | None = None,
    listening: Callable[[str, str | None], None] = lambda _socket, _url: None,
) -> None:
    """Serve until a signal, or for some seconds. `listening` gets the socket and the URL once both answer."""
    sys.setswitchinterval(SWITCH)
    _raise_file_limit()
    metrics = Metrics()

    def on_round(cluster: str, verdicts: Sequence[Verdict]) -> None:
        metrics.on_round(cluster, verdicts)
        if verdicts:
            broadcast.wake()

    broadcast = Broadcast(app, counted=lambda _: metrics.lost.inc())
    service = Service(app, request, output, on_round=on_round, on_stored=broadcast.wake)
    metrics.watch(service, lambda: broadcast.clients)
    with ExitStack() as stack:
        path = socket_path(app)
        sockets = [stack.enter_context(_unix_socket(path))]
        url, tls = None, tls_context(app)
        if app.settings.service.listen:
            sockets.append(port := stack.enter_context(_port(app.settings.service.listen)))
            host, number = port.getsockname()[:2]
            url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{number}"
        stack.callback(service.stop)
        service.start()
        server = _Server(
            uvicorn.Config(
                create(service, broadcast, metrics, url=url or ""),
                log_config=None,
                lifespan="on",
                backlog=BACKLOG,
                timeout_graceful_shutdown=3,
                **uvicorn_options(),
            ),
            tls,
        )
        asyncio.run(server.serve_until(sockets, seconds, lambda: listening(str(path), url)))


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < MOST_FILES:
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
    """Uses TLS on its port but not on its unix socket; uvicorn would treat both alike.

    Ends on SIGTERM and SIGINT without raising them again: stopping the service is not an error.
    """

    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None) -> None:
        super().__init__(config)
        self._tls = tls

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        sockets = sockets or []
        await super().startup([each for each in sockets if each.family == socket.AF_UNIX])

        def protocol() -> PeerProtocol:
            return PeerProtocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )

        for port in (each for each in sockets if each.family != socket.AF_UNIX):
            self.servers.append(
                await asyncio.get_running_loop().create_server(
                    protocol,
                    sock=port,
                    ssl=self._tls,
                    ssl_handshake_timeout=HEAD_SECONDS if self._tls else None,
                    backlog=BACKLOG,
                )
            )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def serve_until(
        self, sockets: list[socket.socket], seconds: float | None, started: Callable[[], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        if seconds is not None:
            loop.call_later(seconds, self._end)
        beside = [asyncio.create_task(self._announce(started)), asyncio.create_task(_beat(sockets))]
        await self.serve(sockets)
        for task in beside:
            task.cancel()

    def _end(self) -> None:
        self.should_exit = True

    async def _announce(self, started: Callable[[], None]) -> None:
        while not self.started:
            await asyncio.sleep(0.02)
        notify_systemd(READY)
        started()


async def _beat(sockets: list[socket.socket]) -> None:
    """Runs in the loop that answers: if that hangs, the hooks in Slurm and systemd notice."""
    path = next(each.getsockname() for each in sockets if each.family == socket.AF_UNIX)
    while True:
        beat_for_hooks(path)
        notify_systemd(ALIVE)
        await asyncio.sleep(1)


@contextmanager
def _unix_socket(path: Path) -> Iterator[socket.socket]:
    """Anybody who can reach its folder may connect; the kernel reports who it is."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if _answers(path):
        raise SettingsError(f"another service answers on {path}; stop it, or set service.socket")
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()  # left by a killed service
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        try:
            listener.bind(str(path))
        except OSError as error:
            raise SettingsError(
                f"cannot listen on the socket {path} ({error.strerror}); set service.socket to another path"
            ) from None
        path.chmod(0o666)
        listener.listen(BACKLOG)
        mine = path.stat().st_ino
        yield listener
    finally:
        listener.close()
    with suppress(OSError):
        if path.stat().st_ino == mine:
            path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


@contextmanager
def _port(address: str) -> Iterator[socket.socket]:
    host, _, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise SettingsError(f'service.listen is "{address}"; write ADDRESS:PORT, such as 127.0.0.1:8642')
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        try:
            listener.bind((host, int(port)))
        except OSError as error:
            raise SettingsError(
                f"cannot listen on {address} ({error.strerror}); is another service running? set service.listen"
            ) from None
        listener.listen(BACKLOG)
        yield listener
    finally:
        listener.close()
