"""HTTP to slurmrestd over TCP or a unix socket: token, retries, limits, errors as sentences."""

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2

from tocsin.core.errors import ClusterError, SettingsError
from tocsin.sources.json_replies import error_in

__all__ = ["MAX_REPLY", "RestHttp", "json_object"]

MAX_REPLY = 2**30
_SMALL = 2**18
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
# slurmctld or slurmdbd did not answer: 22.05 gives -1 (also for a bad token) and 7000, the latter with HTTP 200.
_TRANSIENT_ERRORS = frozenset({-1, 7000})


class RestHttp:
    """A slurmrestd at `http://host:port` or `unix:/path/to/socket`. `token` is called for each request.

    Tests hand in `transport`, `sleep`, `now` and `jitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str,
        token: Callable[[], str],
        timeout: float = 60.0,
        tries: int = 5,
        retry_seconds: float = 120.0,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.url, self.user = url, user
        self._token, self._tries, self._retry_seconds = token, tries, retry_seconds
        self._sleep, self._now, self._jitter = sleep, now, jitter
        self._client = _client(url, timeout, transport)

    def close(self) -> None:
        self._client.close()

    def request_ok(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> bytes:
        """The body of a successful reply; anything else raises ClusterError."""
        status, answer = self.request(method, path, query=query, body=body)
        if status == 200:
            return answer
        if status == 401:
            raise ClusterError(
                f"slurmrestd at {self.url} refuses the token of {self.user} (HTTP 401); renew it with scontrol token"
            )
        if status in (404, 405):
            raise ClusterError(f"slurmrestd at {self.url} does not serve {path} (HTTP {status})")
        reply = json_object(answer)
        failure = error_in(reply.get("errors")) or ClusterError("no reason given")
        hint = ""
        if _numbers(reply) & _TRANSIENT_ERRORS or not reply:
            hint = f"; is slurmctld up (scontrol ping), and the token one of {self.user}?"
        raise ClusterError(f"slurmrestd at {self.url} answers {path} with HTTP {status}: {failure}{hint}")

    def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None
    ) -> tuple[int, bytes]:
        """Status and body. Transient failures are retried with exponential backoff and jitter."""
        began, wait = self._now(), _FIRST_WAIT
        for left in range(self._tries - 1, -1, -1):
            pause = wait * (0.5 + self._jitter() / 2)
            last = not left or self._now() - began + pause > self._retry_seconds
            try:
                status, answer = self._once(method, path, query, body)
            except httpx2.TransportError as error:
                if last:
                    raise ClusterError(
                        f"slurmrestd at {self.url} does not answer ({_reason(error)}); "
                        "is it running, and is the address right?"
                    ) from None
            else:
                if last or not _is_transient(status, answer):
                    return status, answer
            self._sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last try returns or raises")  # pragma: no cover

    def _once(self, method: str, path: str, query: Mapping[str, str] | None, body: Any) -> tuple[int, bytes]:
        headers = {"X-SLURM-USER-NAME": self.user, "X-SLURM-USER-TOKEN": self._token()}
        found = bytearray()
        with self._client.stream(method, path, params=query, json=body, headers=headers) as answer:
            for chunk in answer.iter_bytes():
                found += chunk
                if len(found) > MAX_REPLY:
                    raise ClusterError(
                        f"slurmrestd's answer has more than {MAX_REPLY >> 20} MiB; ask for a shorter time"
                    )
            return answer.status_code, bytes(found)


def _client(url: str, timeout: float, transport: httpx2.BaseTransport | None) -> httpx2.Client:
    base = url
    if url.startswith("unix:"):
        path = url.removeprefix("unix:").removeprefix("//")
        if not path.startswith("/"):
            raise SettingsError(f'"{url}" names no socket; write unix:/path/to/socket')
        transport, base = transport or httpx2.HTTPTransport(uds=path), "http://slurmrestd"
    elif not re.match(r"https?://[^/\s]+", url):
        raise SettingsError(
            f'"{url}" is no address of slurmrestd; write http://host:6820 or unix:/path/to/socket'
        )
    try:
        # No proxy of the environment: a token must not go anywhere else.
        return httpx2.Client(base_url=base, timeout=timeout, transport=transport, trust_env=False)
    except (httpx2.InvalidURL, ValueError) as error:
        raise SettingsError(f'"{url}" is no address of slurmrestd: {error}') from None


def _is_transient(status: int, body: bytes) -> bool:
    if status in _TRANSIENT_STATUSES:
        return True
    if (status < 500 and status != 200) or len(body) > _SMALL:
        return False
    reply = json_object(body)
    return bool(_numbers(reply) & _TRANSIENT_ERRORS) or (status >= 500 and not reply)


def _numbers(reply: Mapping[str, Any]) -> set[Any]:
    errors = reply.get("errors")
    entries = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    numbers = (error.get("error_number", error.get("errno")) for error in entries)
    return {number for number in numbers if isinstance(number, int)}


def json_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
