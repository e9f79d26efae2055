"""The methods by which a client proves who it is; each finds its own credential in a request."""

import asyncio
import pwd
import time
from collections.abc import Callable
from enum import StrEnum
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

from tocsin.app.credentials import Credentials, TokenKind
from tocsin.app.roles import RoleLists
from tocsin.core.errors import SettingsError, Unauthenticated
from tocsin.serve.identity.browser import cookie_name, is_secure
from tocsin.serve.identity.request import Request, checked_user
from tocsin.serve.principal import Principal, Role

__all__ = ["Authenticator", "Demo", "Method", "Proxy", "Session", "Socket", "role_named"]


class Method(StrEnum):
    """How a principal was identified."""

    SOCKET = "socket"
    RELAY = "relay"
    SLURM = "slurm token"
    API = "api token"
    READ_ONLY = "read-only token"
    PROXY = "proxy"
    SESSION = "session"
    DEMO = "demo"


AMBIENT = frozenset({Method.PROXY, Method.SESSION, Method.DEMO})
"""A browser adds these credentials by itself, whichever page makes it send the request."""


class Authenticator(Protocol):
    def offered(self, request: Request) -> bool:
        """Whether the request has a credential of this kind, valid or not."""

    async def principal(self, request: Request) -> Principal:
        """The principal that the credential proves; raises Unauthenticated."""


def role_named(name: str) -> Role:
    return Role[name.upper()]


_REMEMBERED = 5.0
"""Seconds for which the user of a uid is cached, so that a following request waits for no thread."""
_MOST_REMEMBERED = 10_000


class Socket:
    """The unix socket: the kernel reports the uid at the other end."""

    def __init__(self, roles: RoleLists, *, now: Callable[[], float] = time.monotonic) -> None:
        self._roles, self._now = roles, now
        self._known: dict[int, tuple[float, Principal]] = {}

    def offered(self, request: Request) -> bool:
        return request.peer.uid is not None

    async def principal(self, request: Request) -> Principal:
        uid = request.peer.uid
        assert uid is not None, "offered"
        known = self._known.get(uid)
        if known and known[0] > self._now():
            return known[1]
        found = await asyncio.to_thread(self._look_up, uid)
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[uid] = self._now() + _REMEMBERED, found
        return found

    def _look_up(self, uid: int) -> Principal:
        user = user_of(uid)
        return Principal(user, role_named(self._roles.role_of_uid(uid, user)), Method.SOCKET)


def user_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        raise Unauthenticated(f"uid {uid} has no user name on this host") from None


class Session:
    """The session cookie of a browser."""

    def __init__(self, credentials: Credentials, public_url: str) -> None:
        self._credentials, self._public_url = credentials, public_url

    def _secret(self, request: Request) -> str | None:
        return request.cookie(cookie_name(is_secure(request, self._public_url)))

    def offered(self, request: Request) -> bool:
        return bool(self._secret(request))

    async def principal(self, request: Request) -> Principal:
        request.require_private("a session cookie")
        token = await asyncio.to_thread(
            self._credentials.find, self._secret(request) or "", TokenKind.SESSION
        )
        if token is None:
            raise Unauthenticated("this session has ended; log in again: tocsin login")
        return Principal(token.user, role_named(token.role), Method.SESSION)


class Proxy:
    """A header in which a trusted proxy names the user; from any other client, it is refused, not ignored."""

    def __init__(self, header: str, trusted: str, roles: RoleLists) -> None:
        self._header, self._roles = header, roles
        words = [word.strip() for word in trusted.split(",") if word.strip()]
        self._users = {word.removeprefix("unix:") for word in words if word.startswith("unix:")}
        self._networks = [_network(word) for word in words if not word.startswith("unix:")]
        if not words:
            raise SettingsError(
                "service.proxy_header is set, but not service.proxy_from: name the proxy, such as unix:www-data"
            )

    def offered(self, request: Request) -> bool:
        """A trusted proxy must always name its user; else its visitors would act as the proxy's own user."""
        return request.header(self._header) is not None or self._trusted(request)

    async def principal(self, request: Request) -> Principal:
        if not self._trusted(request):
            raise Unauthenticated(
                f"the header {self._header} is accepted from the proxies in service.proxy_from only"
            )
        user = checked_user(request.header(self._header) or "", f"the header {self._header}")
        role = await asyncio.to_thread(self._roles.role, user)
        return Principal(user, role_named(role), Method.PROXY)

    def _trusted(self, request: Request) -> bool:
        peer = request.peer
        if peer.uid is not None:
            return bool(self._users) and user_of(peer.uid) in self._users
        address = ip_address((peer.address or "0.0.0.0").partition("%")[0])  # noqa: S104  # in no network of a site
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)


def _network(word: str) -> IPv4Network | IPv6Network:
    try:
        network = ip_network(word)
    except ValueError:
        raise SettingsError(
            f'service.proxy_from has "{word}"; write unix:USER, an IP address or a network'
        ) from None
    if network.network_address.is_loopback or not network.prefixlen:
        raise SettingsError(
            f"service.proxy_from has {word}, from which every user of this host could send the header; "
            "let the proxy connect to the unix socket, and write unix:USER"
        )
    return network


class Demo:
    """The demo: everybody on this host is an operator."""

    def offered(self, request: Request) -> bool:
        return request.peer.loopback

    async def principal(self, request: Request) -> Principal:  # noqa: ARG002  # being there is enough
        return Principal("demo", Role.OPERATOR, Method.DEMO)
