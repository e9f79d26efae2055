"""A client of the service that uses only the standard library, so that commands start fast."""

import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLError
from typing import Any
from urllib.parse import urlencode, urlsplit

from tocsin.app.app import App
from tocsin.app.service_address import service_places
from tocsin.core.errors import ClusterError, SettingsError, TocsinError
from tocsin.core.problems import error_of

__all__ = ["Client", "first_that_answers", "reachable"]

CONNECT_SECONDS = 2.0
ANSWER_SECONDS = 60.0
_LARGEST = 256 << 20
_API = "/api/v1"
_LOCALLY = "--local uses your own data instead"


class Client:
    """Sends requests to one service; each is a connection of its own."""

    def __init__(self, place: str, otherwise: str = _LOCALLY) -> None:
        """`otherwise`: the next step if it does not answer."""
        self.place, self._otherwise = place, otherwise

    def get(self, path: str, **query: Any) -> Any:
        """The document at a path of the API."""
        wanted = {name: value for name, value in query.items() if value not in (None, "", ())}
        return self._ask("GET", f"{path}?{urlencode(wanted)}" if wanted else path)

    def post(self, path: str, document: Mapping[str, Any]) -> Any:
        return self._ask("POST", path, json.dumps(document).encode())

    def pages(self, path: str, entries: str, most: int, query: Mapping[str, Any]) -> Iterator[Any]:
        """The entries of a list, over all of its pages; `most` 0: all."""
        cursor, left = None, most
        while True:
            part = self.get(path, **query, cursor=cursor, limit=min(1000, left) if most else 1000)
            yield from part[entries]
            cursor, left = part["next"], left - len(part[entries])
            if cursor is None or (most and left <= 0):
                return

    def answers(self) -> bool:
        """Whether a server listens there, be its certificate valid or not: a request says what is wrong with it."""
        try:
            with closing(self._connection(CONNECT_SECONDS)) as connection:
                connection.connect()
        except SSLError:
            return True
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        headers = {"Accept": "application/json"} | ({"Content-Type": "application/json"} if body else {})
        try:
            with closing(self._connection(ANSWER_SECONDS)) as connection:
                connection.request(method, _API + path, body, headers)
                reply = connection.getresponse()
                text = reply.read(_LARGEST)
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise ClusterError(
                f"the service at {self.place} does not answer ({reason}); {self._otherwise}"
            ) from None
        return _document(self.place, reply.status, text)

    def _connection(self, seconds: float) -> HTTPConnection:
        if self.place.startswith("unix:"):
            return _UnixConnection(self.place.removeprefix("unix:"), seconds)
        url = urlsplit(self.place)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise SettingsError(
                f'"{self.place}" is not the address of a service; write https://host or unix:/path in TOCSIN_SERVICE or service.url'
            )
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        return kind(url.hostname, url.port, timeout=seconds)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _document(place: str, status: int, text: bytes) -> Any:
    try:
        document = json.loads(text)
    except ValueError:
        raise TocsinError(
            f"the service at {place} answers with HTTP {status} and no JSON; is it tocsin's?"
        ) from None
    if status >= 400:
        raise error_of(document if isinstance(document, dict) else {})
    return document


def reachable(app: App) -> Client | None:
    """The first service that answers, or None."""
    return first_that_answers(service_places(app))


def first_that_answers(places: Iterable[str], otherwise: str = _LOCALLY) -> Client | None:
    clients = (Client(place, otherwise) for place in places)
    return next((client for client in clients if client.answers()), None)
