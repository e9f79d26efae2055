"""A stand-in for the service at its socket: answers `POST /api/v1/advice` with advice, and beats; it can hang, too."""

import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from tocsin.slurm.heartbeat import heartbeat_file, write_heartbeat

ADVICE = "tocsin: likely to run out of memory (risk 91%)\ntocsin: request --mem=4G\n"


class Asked(NamedTuple):
    path: str
    options: list[str]
    accept: str
    script: str


class StandIn(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """In a folder that everybody may enter. `hang()` stops answers and heartbeat, as a stuck event loop would."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, folder: Path, advice: str = ADVICE) -> None:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        self.socket_file = folder / "tocsin.sock"
        self.socket_file.unlink(missing_ok=True)
        self.advice = advice
        self.asked: list[Asked] = []
        self._running, self._ended = threading.Event(), threading.Event()
        self._running.set()
        super().__init__(str(self.socket_file), _Handler)
        self.socket_file.chmod(0o777)

    def __enter__(self) -> Self:
        write_heartbeat(heartbeat_file(self.socket_file), time.time())
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def _beat(self) -> None:
        while not self._ended.wait(0.5):
            if self._running.is_set():
                write_heartbeat(heartbeat_file(self.socket_file), time.time())

    def hang(self) -> None:
        self._running.clear()

    def go_on(self) -> None:
        write_heartbeat(heartbeat_file(self.socket_file), time.time())
        self._running.set()

    def stale(self, seconds: int) -> None:
        """Hang, as if that long ago."""
        self.hang()
        write_heartbeat(heartbeat_file(self.socket_file), time.time() - seconds)

    def wait(self) -> None:
        self._running.wait(30)

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        self._running.set()
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        self.server.wait()
        address = urlsplit(self.path)
        script = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        options = parse_qs(address.query).get("option", [])
        self.server.asked.append(Asked(address.path, options, self.headers.get("Accept", ""), script))
        body = self.server.advice.encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except BrokenPipeError:  # it took too long, and the client has gone
            self.close_connection = True

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""
