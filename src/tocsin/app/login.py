"""`login`: ask the service for a one-time link, as the user who runs this command."""

from typing import NamedTuple

from tocsin.app.app import App
from tocsin.app.client import first_that_answers
from tocsin.app.service_address import service_places
from tocsin.core.errors import ClusterError, Forbidden, TocsinError, Unauthenticated

__all__ = ["LoginLink", "login_link"]

_RUNNING = "is tocsin serve or tocsin relay running on this host?"
_SOCKET = "unix:"


class LoginLink(NamedTuple):
    url: str
    valid_seconds: int


def login_link(app: App, socket: str | None = None) -> LoginLink:
    """A link that logs a browser in as this user, once. The service or a relay identifies the user by the socket."""
    places = [f"{_SOCKET}{socket}"] if socket else service_places(app)
    sockets = [place for place in places if place.startswith(_SOCKET)]
    client = first_that_answers(sockets, otherwise=_RUNNING)
    if client is None:
        tried = " or ".join(place.removeprefix(_SOCKET) for place in sockets)
        raise ClusterError(f"no service answers on the socket {tried}; {_RUNNING}{_other(places)}")
    try:
        document = client.post("/login-links", {})
    except (Forbidden, Unauthenticated) as error:
        raise Forbidden(f"the service refuses a login: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("url"), str):
        raise TocsinError(f"the service at {client.place} answers without a link; is it tocsin's?")
    return LoginLink(document["url"], int(document.get("valid_seconds", 0)))


def _other(places: list[str]) -> str:
    """What to do where the service is known by a URL only, which does not show who is asking."""
    urls = [place for place in places if not place.startswith(_SOCKET)]
    return f" A browser can also log in at {urls[0]} where OpenID Connect is set up." if urls else ""
