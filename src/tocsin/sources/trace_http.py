"""HTTP GET of JSON from Prometheus or an agent: limits of time and size, retries, no redirects, errors as sentences."""

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import httpx2

from tocsin.core.errors import SettingsError, SourceError
from tocsin.core.settings import without_password
from tocsin.sources.rest_deadline import Deadline

__all__ = ["MAX_REPLY", "Reply", "TooLarge", "TraceHttp"]

MAX_REPLY = 32 * 2**20  # about a million points, which take ten times as much when parsed
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0
_TRANSIENT = frozenset({429, 500, 502, 503, 504})


class TooLarge(SourceError):
    """The reply is larger than allowed: request less."""


class Reply(NamedTuple):
    status: int
    body: dict[str, Any] | None
    """None if it is not a JSON object."""


class TraceHttp:
    """A server at `http://host:port`. `seconds` bounds each request as a whole, headers and body.

    Tests pass `transport`, `sleep` and `now`.
    """

    def __init__(
        self,
        url: str,
        title: str,
        *,
        seconds: float = 60.0,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        if not re.match(r"https?://[^/\s]+", url):
            raise SettingsError(
                f'"{without_password(url)}" is not the address of {title}; write http://host:port'
            )
        self.url, self.title = without_password(url).rstrip("/"), title
        self.retries = 0
        """Requests that were repeated."""
        self._seconds, self._tries, self._sleep = seconds, tries, sleep
        self._deadline = Deadline(now)
        try:
            # No proxy from the environment: what jobs do is private.
            self._client = httpx2.Client(
                base_url=url,
                timeout=seconds,
                transport=transport or self._deadline.transport(None),
                trust_env=False,
                follow_redirects=False,
            )
        except (httpx2.InvalidURL, ValueError) as error:
            raise SettingsError(f'"{self.url}" is not the address of {title}: {error}') from None

    def close(self) -> None:
        self._client.close()

    def get(self, path: str, query: Mapping[str, str]) -> Reply:
        """The reply; a server that is unreachable or overloaded is retried a few times."""
        wait = _FIRST_WAIT
        for left in range(self._tries - 1, -1, -1):
            reason = ""
            self._deadline.start(self._seconds)
            try:
                with self._client.stream("GET", path, params=query) as found:
                    if found.is_redirect:
                        place = found.headers.get("location", "")[:200]
                        raise SourceError(
                            f"{self.title} at {self.url} redirects to {place}; name the right address"
                        )
                    body = b"".join(self._bounded(found.iter_bytes()))
                reply = Reply(found.status_code, _json_object(body))
                if reply.status not in _TRANSIENT or not left:
                    return reply
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                reason = str(error) or type(error).__name__
                if not left:
                    raise SourceError(
                        f"{self.title} at {self.url} does not answer ({reason}); is it running, and is the address right?"
                    ) from None
            self.retries += 1
            self._sleep(wait * (0.5 + random.random() / 2))  # noqa: S311 - no secret depends on it
            wait = min(2 * wait, _LONGEST_WAIT)
        raise AssertionError("the last try returns or raises")  # pragma: no cover

    def _bounded(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for chunk in self._deadline.checked(chunks):
            size += len(chunk)
            if size > MAX_REPLY:
                raise TooLarge(f"a reply of {self.title} at {self.url} has more than {MAX_REPLY >> 20} MiB")
            yield chunk


def _json_object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
