"""The agent's HTTP server: /metrics for Prometheus, /window for samples that a slow scrape missed, /healthz."""

import math
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tocsin.agent.exposition import metrics, window
from tocsin.agent.sampler import Sampler

__all__ = ["AgentServer"]


class AgentServer(ThreadingHTTPServer):
    """Answers from the sampler's buffer; a request never touches the kernel's files."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], sampler: Sampler, node: str) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self.sampler = sampler
        self.node = node
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not worth twenty lines of the journal, which any job on the node could fill."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: AgentServer
    timeout = 5
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        try:
            url = urlsplit(self.path)
        except ValueError:
            self._answer(400, f"{self.path[:40]!r} is not an address\n")
            return
        sampler = self.server.sampler
        if url.path == "/metrics":
            self._answer(200, metrics(sampler), "text/plain; version=0.0.4; charset=utf-8")
        elif url.path == "/window":
            text = parse_qs(url.query).get("since", ["0"])[0]
            try:
                since = float(text)
            except ValueError:
                since = math.nan
            if math.isnan(since):
                self._answer(400, f"since={text[:40]!r} is not a number of seconds since 1970\n")
            else:
                self._answer(200, window(self.server.node, sampler, sampler.since(since)), "application/json")
        elif url.path == "/healthz":
            ready = sampler.newest is not None
            self._answer(200 if ready else 503, "ok\n" if ready else "no sample yet\n")
        else:
            self._answer(404, "not found; use /metrics, /window?since=SECONDS or /healthz\n")

    def _answer(self, status: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """A scrape each second is not worth a line."""
