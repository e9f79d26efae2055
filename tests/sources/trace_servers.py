"""Replies of Prometheus for tests, and a server that answers as it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, bytes, Mapping[str, str]]


def matrix(labels: Mapping[str, str], values: Mapping[int, float]) -> dict[str, Any]:
    """One series of a reply of query_range."""
    return {"metric": dict(labels), "values": [[at, str(value)] for at, value in values.items()]}


def success(result: Any, **more: Any) -> Answer:
    body = {"status": "success", "data": {"resultType": "matrix", "result": result}, **more}
    return 200, json.dumps(body).encode(), {}


def failure(status: int, error: str) -> Answer:
    return status, json.dumps({"status": "error", "errorType": "execution", "error": error}).encode(), {}


@contextmanager
def serving(answer: Callable[[str, dict[str, str]], Answer]) -> Iterator[str]:
    """The address of a server on loopback whose replies are computed from path and query."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            status, body, headers = answer(
                url.path, {name: value[0] for name, value in parse_qs(url.query).items()}
            )
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
