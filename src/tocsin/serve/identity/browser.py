"""Protection of browsers: security headers on each reply, and which pages may send a request."""

from urllib.parse import urlsplit

from tocsin.core.errors import Forbidden
from tocsin.serve.identity.asgi import App, Message, Receive, Scope, Send
from tocsin.serve.identity.peer import KEY, Peer
from tocsin.serve.identity.request import Request

__all__ = ["COOKIES", "SecurityHeaders", "check_host", "check_origin", "cookie_name", "is_secure"]

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not `no-referrer`, which makes browsers send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_FIXED = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
_NAMES = {name for name, _ in _FIXED}

COOKIES = ("__Host-tocsin", "tocsin_session")
"""With TLS, and without it on this host. Browsers let no other site set the first one."""


class SecurityHeaders:
    """Adds the headers to every reply, and forbids caching unless a reply allows it."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [
                    (name, value) for name, value in message.get("headers", []) if name.lower() not in _NAMES
                ]
                present = {name.lower() for name, _ in own}
                if b"cache-control" not in present:
                    kept = b"private, no-cache" if b"etag" in present else b"no-store"
                    own.append((b"cache-control", kept))
                if isinstance(peer := scope.get(KEY), Peer) and peer.tls:
                    own.append((b"strict-transport-security", b"max-age=31536000"))
                message["headers"] = own + _FIXED
            await send(message)

        await self._app(scope, receive, with_headers)


def is_secure(request: Request, public_url: str) -> bool:
    """Whether the browser uses TLS, to us or to a proxy in front."""
    public = urlsplit(public_url)
    return request.peer.tls or (public.scheme == "https" and request.header("host") == public.netloc)


def cookie_name(secure: bool) -> str:
    return COOKIES[0] if secure else COOKIES[1]


def check_host(request: Request, public_url: str) -> None:
    """Refuse other names for this host, since another site could rebind its own name to our address."""
    if request.peer.uid is not None:
        return  # no browser connects to a unix socket
    host = request.header("host") or ""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        name = ""
    names = {"127.0.0.1", "::1", "localhost", urlsplit(public_url).hostname}
    if name not in names:
        raise Forbidden(
            "the Host header is not a name of this service; use 127.0.0.1 or localhost, or set service.public_url"
        )


def check_origin(request: Request, public_url: str) -> None:
    """Refuse a request that another site's page made the browser send (CSRF). Programs set Origin themselves."""
    site = request.header("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        raise Forbidden("a page of another site sent this request")
    origin = request.header("origin")
    if origin is None and site is None:
        raise Forbidden(
            "a request with a session that changes something needs an Origin header; programs should use a token"
        )
    host = request.header("host") or ""
    own = {f"http://{host}", f"https://{host}", public_url.rstrip("/")}
    if origin is not None and origin not in own:
        raise Forbidden("a page of another site sent this request: its Origin is not this service")
