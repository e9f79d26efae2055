"""Identifies users by their own Slurm token, which slurmrestd verifies."""

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Protocol

import jwt

from tocsin.app.roles import RoleLists
from tocsin.core.errors import ClusterError, Unauthenticated
from tocsin.serve.identity.authenticators import Method, role_named
from tocsin.serve.identity.rates import Buckets
from tocsin.serve.identity.request import Request, checked_user
from tocsin.serve.principal import Principal

__all__ = ["CACHED_SECONDS", "SlurmToken", "TokenCheck"]

NAME, TOKEN = "X-SLURM-USER-NAME", "X-SLURM-USER-TOKEN"
CACHED_SECONDS = 60.0
_MOST = 10_000  # remembered tokens
_CHECKS_A_MINUTE = 600  # limit on questions to slurmctld, however many tokens are sent


class TokenCheck(Protocol):
    """Asks Slurm whether a token is valid; raises ClusterError if Slurm cannot be asked."""

    def __call__(self, user: str, token: str) -> bool: ...


class SlurmToken:
    """The headers that slurmrestd itself takes. The name must match the token, and Slurm must accept the token."""

    def __init__(
        self,
        check: TokenCheck | None,
        roles: RoleLists,
        *,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._check, self._roles, self._now, self._clock = check, roles, now, clock
        self._accepted: dict[bytes, float] = {}
        self._budget = Buckets(_CHECKS_A_MINUTE, now=clock)

    def offered(self, request: Request) -> bool:
        return request.header(NAME) is not None or request.header(TOKEN) is not None

    async def principal(self, request: Request) -> Principal:
        request.require_private("a Slurm token")
        name, token = request.header(NAME), request.header(TOKEN)
        if not name or not token:
            raise Unauthenticated(f"a Slurm token needs both headers, {NAME} and {TOKEN}")
        user = checked_user(name, f"the header {NAME}")
        expires = self._claimed(user, token)
        key = hashlib.sha256(f"{user}\n{token}".encode()).digest()
        if self._accepted.get(key, 0.0) <= self._clock():
            await self._ask(user, token)
            self._remember(key, min(CACHED_SECONDS, expires - self._now()))
        role = await asyncio.to_thread(self._roles.role, user)
        return Principal(user, role_named(role), Method.SLURM)

    def _claimed(self, user: str, token: str) -> float:
        """When the token claims to expire. Slurm verifies the signature; this check only saves a question."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise Unauthenticated(
                f"the text in {TOKEN} is not a Slurm token; make one with: scontrol token"
            ) from None
        if claims.get("sun") != user:
            raise Unauthenticated(f"the Slurm token belongs to another user than {user}, which {NAME} names")
        expires = claims.get("exp")
        if not isinstance(expires, int | float) or expires <= self._now():
            raise Unauthenticated(
                f"the Slurm token of {user} has expired; make a new one with: scontrol token"
            )
        return float(expires)

    async def _ask(self, user: str, token: str) -> None:
        if self._check is None:
            raise Unauthenticated("Slurm tokens are not accepted here: no cluster has a rest_url")
        if self._budget.take("slurmrestd"):
            raise ClusterError("too many Slurm tokens are waiting to be checked; try again in a minute")
        if not await asyncio.to_thread(self._check, user, token):
            raise Unauthenticated(f"Slurm refuses the token of {user}; make a new one with: scontrol token")

    def _remember(self, key: bytes, seconds: float) -> None:
        if len(self._accepted) >= _MOST:
            now = self._clock()
            self._accepted = {k: end for k, end in self._accepted.items() if end > now}
            if len(self._accepted) >= _MOST:
                self._accepted.clear()
        self._accepted[key] = self._clock() + seconds
