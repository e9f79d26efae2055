"""The routes by which a browser starts and ends its session."""

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode

from tocsin.app.roles import RoleLists
from tocsin.core.errors import Forbidden, TocsinError, Unauthenticated
from tocsin.serve.identity.asgi import App, Receive, Scope, Send, answer, refuse
from tocsin.serve.identity.authenticators import Method
from tocsin.serve.identity.browser import check_origin, cookie_name, is_secure
from tocsin.serve.identity.oidc import Oidc
from tocsin.serve.identity.pages import confirm_page, entered_page, unknown_page
from tocsin.serve.identity.request import Request
from tocsin.serve.identity.sessions import LINK_SECONDS, Sessions

if TYPE_CHECKING:
    from tocsin.serve.principal import Principal

__all__ = ["Login"]

_HTML = "text/html; charset=utf-8"
_LARGEST = 4096
_FLOW = "tocsin_oidc"
_FLOW_SECONDS = 600
_MAY_LINK = frozenset({Method.SOCKET, Method.RELAY, Method.SLURM})
"""Not API tokens: a session must not outlive the token from which it was started."""


class Login:
    """Serves `/login…`, `/logout` and `/api/v1/login-links`; passes everything else on. Runs behind the gate."""

    def __init__(
        self, app: App, sessions: Sessions, roles: RoleLists, *, url: str, public_url: str, oidc: Oidc | None
    ) -> None:
        self._app, self._sessions, self._roles = app, sessions, roles
        self._url, self._public_url, self._oidc = url, public_url, oidc
        self._routes = {
            ("GET", "/login"): self._confirm,
            ("POST", "/login"): self._enter,
            ("GET", "/login/oidc"): self._to_issuer,
            ("GET", "/login/oidc/callback"): self._from_issuer,
            ("POST", "/logout"): self._leave,
            ("POST", "/api/v1/login-links"): self._link,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._routes.get((scope.get("method", ""), scope.get("path", "")))
        if scope["type"] != "http" or route is None:
            await self._app(scope, receive, send)
            return
        try:
            await route(scope, receive, send)
        except Unauthenticated as error:
            await answer(send, 401, unknown_page(str(error), oidc=self._oidc is not None), _HTML)
        except TocsinError as error:
            await refuse(send, error)

    async def _link(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # no body is read
        principal: Principal = scope["state"]["principal"]
        if principal.method not in _MAY_LINK:
            raise Forbidden(
                "a login link needs the unix socket or a Slurm token; on a login node: tocsin login"
            )
        code = await asyncio.to_thread(self._sessions.link, principal)
        document = {"url": f"{self._url}/login?{urlencode({'code': code})}", "valid_seconds": LINK_SECONDS}
        await answer(send, 201, json.dumps(document).encode(), "application/json")

    async def _confirm(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        code = _one(scope["query_string"], "code")
        if not code:
            raise Unauthenticated("This address needs a code.")
        await answer(send, 200, confirm_page(code), _HTML)

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request.of(scope)
        request.require_private("a login code")
        check_origin(request, self._public_url)
        code = _one(await _body(receive), "code")
        user, secret = await asyncio.to_thread(self._sessions.enter, code)
        await self._entered(request, send, user, secret)

    async def _leave(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        request, principal = Request.of(scope), scope["state"]["principal"]
        name = cookie_name(is_secure(request, self._public_url))
        if secret := request.cookie(name):
            await asyncio.to_thread(self._sessions.end, secret, principal.user)
        page = unknown_page("You have logged out.", oidc=self._oidc is not None)
        await answer(send, 200, page, _HTML, [_cookie(name, "", 0, secure=name.startswith("__Host-"))])

    async def _to_issuer(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        address, flow = await self._issuer().begin()
        secure = is_secure(Request.of(scope), self._public_url)
        # Lax, because the browser comes back from another site.
        cookie = _cookie(_FLOW, flow, _FLOW_SECONDS, secure=secure, same_site="Lax", path="/login/oidc")
        await answer(send, 303, b"", "text/plain", [(b"location", address.encode()), cookie])

    async def _from_issuer(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        request, query = Request.of(scope), scope["query_string"]
        request.require_private("a login code")
        user = await self._issuer().finish(
            code=_one(query, "code"), state=_one(query, "state"), flow=request.cookie(_FLOW) or ""
        )
        role = await asyncio.to_thread(self._roles.role, user)
        secret = await asyncio.to_thread(self._sessions.begin, user, role, "oidc")
        await self._entered(request, send, user, secret)

    def _issuer(self) -> Oidc:
        if self._oidc is None:
            raise Unauthenticated("Login by an identity provider is not set up here.")
        return self._oidc

    async def _entered(self, request: Request, send: Send, user: str, secret: str) -> None:
        """Always start a new session, and ignore any that the browser sent."""
        secure = is_secure(request, self._public_url)
        name = cookie_name(secure)
        if old := request.cookie(name):
            await asyncio.to_thread(self._sessions.end, old, user)
        cookie = _cookie(name, secret, self._sessions.seconds, secure=secure)
        await answer(send, 200, entered_page(user), _HTML, [cookie])


def _one(text: bytes, name: str) -> str:
    values = parse_qs(text.decode("latin-1"), max_num_fields=20).get(name, [])
    return values[0] if len(values) == 1 else ""


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if len(body) > _LARGEST or message["type"] == "http.disconnect":
            raise Forbidden("the form is too long")
        if not message.get("more_body"):
            return body


def _cookie(
    name: str, value: str, seconds: int, *, secure: bool, same_site: str = "Strict", path: str = "/"
) -> tuple[bytes, bytes]:
    text = f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite={same_site}"
    return b"set-cookie", (text + "; Secure" if secure else text).encode("latin-1")
