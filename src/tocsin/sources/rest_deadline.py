"""A total deadline per HTTP request: a server that sends a byte now and then cannot block the client.

The time that the thread waits for the server is recorded; processing the reply is its own work.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from tocsin.sources.waiting import of_slurmrestd, on_run_queue, wait_noted

__all__ = ["Deadline"]


class Deadline:
    """The time left for the current request of each thread."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._local = threading.local()

    def start(self, seconds: float) -> None:
        self._local.seconds, self._local.end = seconds, self._now() + seconds

    def left(self, timeout: float | None) -> float:
        """Seconds that one operation may take."""
        left = float(self._local.end - self._now())
        if left <= 0:
            raise httpcore2.ReadTimeout(f"no complete reply within {self._local.seconds:g} s")
        return left if timeout is None else min(left, timeout)

    def checked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks of a reply; raises after the deadline."""
        for chunk in chunks:
            if self._now() > self._local.end:
                raise httpx2.ReadTimeout(f"no complete reply within {self._local.seconds:g} s")
            yield chunk

    def transport(self, socket: str | None) -> httpx2.HTTPTransport:
        """A transport whose connections obey the deadline, including headers."""
        made = httpx2.HTTPTransport(uds=socket, trust_env=False)
        # httpx2 has no parameter for the backend of its connection pool.
        made._pool._network_backend = _Backend(self)
        return made


class _Backend(httpcore2.SyncBackend):
    def __init__(self, deadline: Deadline) -> None:
        super().__init__()
        self._deadline = deadline

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *args: Any, **options: Any
    ) -> httpcore2.NetworkStream:
        stream = super().connect_tcp(host, port, self._deadline.left(timeout), *args, **options)
        return _Stream(stream, self._deadline)

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.NetworkStream:
        stream = super().connect_unix_socket(path, self._deadline.left(timeout), socket_options)
        return _Stream(stream, self._deadline)


@contextmanager
def _noted() -> Iterator[None]:
    began, queued = time.monotonic(), on_run_queue("thread-self")
    try:
        yield
    finally:
        wait_noted(of_slurmrestd(time.monotonic() - began - (on_run_queue("thread-self") - queued)))


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _noted():
            return self._stream.read(max_bytes, self._deadline.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with _noted():
            self._stream.write(buffer, self._deadline.left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *args: Any, **options: Any) -> httpcore2.NetworkStream:
        return _Stream(self._stream.start_tls(*args, **options), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
