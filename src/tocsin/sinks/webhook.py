"""Webhook: each message by POST, with an id that makes repeats harmless and a signature.

`Tocsin-Signature: t=SECONDS,v1=HEX` is the HMAC-SHA256 of `SECONDS.BODY` with the shared secret.
"""

import hashlib
import hmac
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.ports import Message, Receipt
from tocsin.core.sink_settings import WebhookSinkSettings
from tocsin.sinks.body import message_id, payload
from tocsin.sources.secrets import read_secret

if TYPE_CHECKING:
    import httpx2

__all__ = ["WebhookSink", "signature"]

_MOST_READ = 65_536
_NOT_THE_MESSAGE = frozenset({401, 403, 404, 407, 408, 410, 421, 425, 429})
"""Refusals not caused by the message: a wrong token, a wrong address, too many requests."""


def signature(secret: str, at: int, body: bytes) -> str:
    """Proves that the message is ours, and how old it is."""
    digest = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={digest.hexdigest()}"


class WebhookSink:
    """A 2xx reply acknowledges the message; 5xx and timeouts are retried; other 4xx drop the message."""

    batch = 100

    def __init__(self, name: str, settings: WebhookSinkSettings) -> None:
        self.name = name
        self._url = read_secret(settings.url_file) if settings.url_file else settings.url
        self._place = _place(self._url, name)
        self._secret = read_secret(settings.secret_file) if settings.secret_file else None
        self._token = read_secret(settings.token_file) if settings.token_file else None
        self._timeout = settings.timeout
        self._client: httpx2.Client | None = None

    def due(self, now: float) -> bool:  # noqa: ARG002  # at any time
        return True

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        for message in messages:
            status = self._post(message)
            if 200 <= status < 300:
                yield Receipt([message])
            elif 400 <= status < 500 and status not in _NOT_THE_MESSAGE:
                yield Receipt([message], f"the receiver answered {status}")
            else:
                raise SinkError(f"{self._place} answered {status}")

    def _post(self, message: Message) -> int:
        import httpx2

        body = payload(message).encode()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message_id(message),
            "Tocsin-Kind": message.kind,
        }
        if self._secret:
            headers["Tocsin-Signature"] = signature(self._secret, int(time.time()), body)
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            client = self._open()
            with client.stream("POST", self._url, content=body, headers=headers) as reply:
                _read_some(reply)
                return reply.status_code
        except httpx2.HTTPError as error:
            self.close()
            reason = type(error).__name__ if self._url in str(error) else str(error)
            raise SinkError(f"{self._place} cannot be reached: {reason}") from None

    def _open(self) -> "httpx2.Client":
        from tocsin.sources.rest_deadline import Deadline

        if self._client is None:
            import httpx2

            self._deadline = Deadline(time.monotonic)
            self._client = httpx2.Client(
                transport=self._deadline.transport(None), timeout=self._timeout, follow_redirects=False
            )
        self._deadline.start(self._timeout)
        return self._client


def _place(url: str, name: str) -> str:
    """The address without its path, which may be a secret."""
    import httpx2

    try:
        found = httpx2.URL(url)
    except httpx2.InvalidURL:
        found = httpx2.URL("")
    if found.scheme not in ("http", "https") or not found.host:
        raise SettingsError(f"the URL of sinks.{name} is not one; write https://host/path")
    return f"{found.scheme}://{found.host}" + (f":{found.port}" if found.port else "")


def _read_some(reply: "httpx2.Response") -> None:
    """Read a short reply, so that the connection can be reused; a long one is cut off."""
    size = 0
    for chunk in reply.iter_raw():
        size += len(chunk)
        if size > _MOST_READ:
            return
