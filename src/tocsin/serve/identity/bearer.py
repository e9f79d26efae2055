"""Tokens issued by tocsin: for API clients, and for relays, which act for the users of a login node."""

import asyncio

from tocsin.app.credentials import Credentials, TokenKind
from tocsin.app.roles import RoleLists
from tocsin.core.errors import Unauthenticated
from tocsin.serve.identity.authenticators import Method, role_named
from tocsin.serve.identity.relay_signature import SIGNATURE, USER, is_signed
from tocsin.serve.identity.request import Request, checked_user
from tocsin.serve.principal import Principal

__all__ = ["Bearer"]


class Bearer:
    """`Authorization: Bearer TOKEN`; a relay's token requires the signed name of the user for whom it acts."""

    def __init__(self, credentials: Credentials, roles: RoleLists) -> None:
        self._credentials, self._roles = credentials, roles

    def offered(self, request: Request) -> bool:
        return any(request.header(name) is not None for name in ("authorization", USER, SIGNATURE))

    async def principal(self, request: Request) -> Principal:
        request.require_private("a token")
        scheme, _, secret = (request.header("authorization") or "").partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret:
            raise Unauthenticated("the Authorization header has no token; send: Authorization: Bearer TOKEN")
        token = await asyncio.to_thread(self._credentials.find, secret, TokenKind.API, TokenKind.RELAY)
        if token is None:
            raise Unauthenticated(
                "this token is unknown, revoked or expired; an administrator makes one: tocsin tokens create"
            )
        user, signature = request.header(USER), request.header(SIGNATURE)
        if token.kind is TokenKind.API:
            if user is not None or signature is not None:
                raise Unauthenticated(
                    f"{USER} is accepted from relays only, and this is not the token of a relay"
                )
            method = Method.READ_ONLY if token.read_only else Method.API
            return Principal(token.user, role_named(token.role), method)
        name = checked_user(user or "", f"the header {USER}")
        line = {"method": request.method, "target": request.target}
        if not is_signed(signature or "", secret, now=self._credentials.now(), user=name, **line):
            raise Unauthenticated(
                f"the relay did not sign {USER} for this request, or its clock differs by more than a minute"
            )
        role = role_named(await asyncio.to_thread(self._roles.role, name))
        return Principal(name, min(role, role_named(token.role)), Method.RELAY)
