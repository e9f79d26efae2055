"""HTTP to slurmrestd over TCP or a unix socket: token, retries, limits of time and size, errors as sentences."""

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

import httpx2

from tocsin.core.errors import ClusterError, NotFound, SettingsError, SourceError, TocsinError
from tocsin.core.settings import without_password
from tocsin.sources.json_replies import INVALID_JOB_ID, error_in, error_numbers
from tocsin.sources.rest_deadline import Deadline

__all__ = ["MAX_REPLY", "MAX_SMALL_REPLY", "RestHttp", "json_object"]

MAX_REPLY = 2**30  # for a dump, which is read as a stream
MAX_SMALL_REPLY = 32 * 2**20  # for everything else; the specification of 24.11 has 1.6 MB
_HEAD = 2**18  # replies up to this size are checked for transient errors
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
# slurmctld or slurmdbd did not answer: 22.05 gives -1 (also for a bad token) and 7000, the latter with HTTP 200.
_TRANSIENT_ERRORS = frozenset({-1, 7000})
_TOKEN_STATUSES = frozenset({401, 511})  # 511 since 24.11
_TOKEN_ERROR = 1007  # "Protocol authentication error"

T = TypeVar("T")


class RestHttp:
    """A slurmrestd at `http://host:port` or `unix:/path/to/socket`. `token` is called for each request.

    `timeout` bounds silence and every small request, `deadline` a whole dump. No try begins later than `retry_seconds`
    after the first. With `local`, a unix socket is first
    tried without a token, since rest_auth/local needs none. `unserved` is called when a path is not served. Tests pass
    `transport`, `sleep`, `now` and `jitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str,
        token: Callable[[], str],
        timeout: float = 60.0,
        deadline: float = 300.0,
        tries: int = 5,
        retry_seconds: float = 120.0,
        local: bool = True,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        transport: httpx2.BaseTransport | None = None,
        unserved: Callable[[], None] = lambda: None,
    ) -> None:
        self.url, self.user = without_password(url), user
        self._token, self._tries, self._retry_seconds = token, tries, retry_seconds
        self._sleep, self._now, self._jitter = sleep, now, jitter
        self._timeout, self._total = timeout, max(deadline, timeout)
        self._deadline = Deadline(now)
        self._client = _client(url, timeout, transport, self._deadline)
        self._unserved = unserved
        self._send_token = not (local and url.startswith("unix:"))

    def close(self) -> None:
        self._client.close()

    def request(self, method: str, path: str, *, body: Any = None) -> tuple[int, bytes]:
        """Status and body of a small reply."""

        def read(status: int, chunks: Iterator[bytes]) -> tuple[int, bytes]:
            return status, b"".join(_bounded(chunks, MAX_SMALL_REPLY))

        return self._retry(method, path, read, self._timeout, body=body)

    def request_ok(self, method: str, path: str, *, body: Any = None) -> bytes:
        """The body of a small successful reply; raises for any other status."""
        status, reply = self.request(method, path, body=body)
        if status != 200:
            raise self.refusal(path, status, reply)
        return reply

    def stream_ok(
        self, path: str, read: Callable[[Iterator[bytes]], T], *, query: Mapping[str, str] | None = None
    ) -> T:
        """Pass a reply of any size to `read`, chunk by chunk; on a retry, `read` is called again."""

        def checked(status: int, chunks: Iterator[bytes]) -> T:
            if status != 200:
                raise self.refusal(path, status, b"".join(_bounded(chunks, MAX_SMALL_REPLY)))
            try:
                return read(_bounded(chunks, MAX_REPLY))
            except SourceError as error:
                raise ClusterError(
                    f"slurmrestd at {self.url} sent an unreadable answer to {path} ({error}); is it slurmrestd?"
                ) from None

        return self._retry("GET", path, checked, self._total, query=query)

    def _retry(
        self,
        method: str,
        path: str,
        read: Callable[[int, Iterator[bytes]], T],
        seconds: float,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> T:
        """Transient failures are retried with exponential backoff and jitter."""
        began, wait = self._now(), _FIRST_WAIT
        for left in range(self._tries - self._send_token, -1, -1):
            pause = wait * (0.5 + self._jitter() / 2)
            until = began + self._retry_seconds - pause if left else began
            self._deadline.start(seconds)
            try:
                with self._client.stream(
                    method, path, params=query, json=body, headers=self._headers()
                ) as reply:
                    chunks = self._deadline.checked(reply.iter_bytes())
                    head = _head(chunks)
                    if reply.status_code in _TOKEN_STATUSES and not self._send_token and left:
                        self._send_token, pause = True, 0.0
                    elif self._now() >= until or not _is_transient(reply.status_code, head):
                        return read(reply.status_code, chain([head], chunks))
            except httpx2.TransportError as error:
                if self._now() >= until:
                    raise ClusterError(
                        f"slurmrestd at {self.url} does not answer ({str(error) or type(error).__name__}); "
                        "is it running, and is the address right?"
                    ) from None
            self._sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last try returns or raises")  # pragma: no cover

    def _headers(self) -> dict[str, str]:
        if not self._send_token:
            return {}
        return {"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": self._token()}

    def refusal(self, path: str, status: int, body: bytes) -> TocsinError:
        """The error for a reply with this status, with the next step."""
        reply = json_object(body)
        numbers = error_numbers(reply.get("errors"))
        if status in (404, 405):
            self._unserved()
        if status in _TOKEN_STATUSES or _TOKEN_ERROR in numbers:
            return ClusterError(
                f"slurmrestd at {self.url} refuses the token of {self.user} (HTTP {status}): it has expired or is "
                "not valid; renew it with scontrol token"
            )
        if INVALID_JOB_ID in numbers or (status == 404 and "/job/" in path):
            return NotFound(f"slurmrestd at {self.url} has no job {path.rsplit('/', 1)[-1]}")
        if status in (404, 405):
            return ClusterError(f"slurmrestd at {self.url} does not serve {path} (HTTP {status})")
        reason = error_in(reply.get("errors")) or "no reason given"
        hint = ""
        if numbers & _TRANSIENT_ERRORS or not reply:
            # slurmdbd's own refusal of a token looks as if slurmdbd were down.
            daemon, ask = (
                ("slurmdbd", "sacctmgr ping") if "slurmdb/" in path else ("slurmctld", "scontrol ping")
            )
            hint = f"; is {daemon} up ({ask}), and the token of {self.user} valid (scontrol token makes a new one)?"
        return ClusterError(f"slurmrestd at {self.url} answers {path} with HTTP {status}: {reason}{hint}")


def _client(
    url: str, timeout: float, transport: httpx2.BaseTransport | None, deadline: Deadline
) -> httpx2.Client:
    base, socket = url, None
    if url.startswith("unix:"):
        socket = url.removeprefix("unix:").removeprefix("//")
        if not socket.startswith("/"):
            raise SettingsError(f'"{url}" has no path of a socket; write unix:/path/to/socket')
        base = "http://slurmrestd"
    elif not re.match(r"https?://[^/\s]+", url):
        raise SettingsError(
            f'"{without_password(url)}" is not an address of slurmrestd; write http://host:6820 or unix:/path/to/socket'
        )
    try:
        # No proxy from the environment: a token must not go anywhere else.
        transport = transport or deadline.transport(socket)
        return httpx2.Client(base_url=base, timeout=timeout, transport=transport, trust_env=False)
    except (httpx2.InvalidURL, ValueError) as error:
        raise SettingsError(f'"{without_password(url)}" is not an address of slurmrestd: {error}') from None


def _head(chunks: Iterator[bytes]) -> bytes:
    head = bytearray()
    for chunk in chunks:
        head += chunk
        if len(head) > _HEAD:
            break
    return bytes(head)


def _bounded(chunks: Iterator[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise ClusterError(f"slurmrestd's reply has more than {limit >> 20} MiB; ask for a shorter time")
        yield chunk


def _is_transient(status: int, head: bytes) -> bool:
    if status in _TRANSIENT_STATUSES:
        return True
    if (status < 500 and status != 200) or status in _TOKEN_STATUSES or len(head) > _HEAD:
        return False
    reply = json_object(head)
    return bool(error_numbers(reply.get("errors")) & _TRANSIENT_ERRORS) or (status >= 500 and not reply)


def json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
