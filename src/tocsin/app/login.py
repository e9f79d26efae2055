"""`login`: ask the service for a one-time link, as the user who runs this command."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.service_address import socket_path
from tocsin.core.errors import ClusterError, Forbidden

__all__ = ["LoginLink", "login_link"]

_SECONDS = 5.0


class LoginLink(NamedTuple):
    url: str
    valid_seconds: int


def login_link(app: App, socket: str | None = None) -> LoginLink:
    """A link that logs a browser in as this user, once. The service or a relay identifies the user by the socket."""
    import httpx2

    path = Path(socket) if socket else socket_path(app)
    if not path.is_socket():
        raise ClusterError(
            f"there is no socket at {path}; is tocsin serve or tocsin relay running on this host?"
        )
    transport = httpx2.HTTPTransport(uds=str(path), trust_env=False)
    try:
        with httpx2.Client(transport=transport, base_url="http://tocsin", timeout=_SECONDS) as client:
            reply = client.post("/api/v1/login-links")
    except httpx2.HTTPError as error:
        raise ClusterError(
            f"the service does not answer on {path} ({error}); is tocsin serve or tocsin relay running?"
        ) from None
    document = _object(reply.content)
    if reply.status_code != 201 or not isinstance(document.get("url"), str):
        raise Forbidden(
            f"the service refuses a login: {document.get('detail') or f'HTTP {reply.status_code}'}"
        )
    return LoginLink(document["url"], int(document.get("valid_seconds", 0)))


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
