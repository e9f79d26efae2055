"""Login by an OpenID Connect issuer: authorization code with PKCE, and an id token verified with the issuer's keys."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import jwt

from tocsin.core.errors import SettingsError, Unauthenticated
from tocsin.serve.identity.peer import Peer
from tocsin.serve.identity.request import checked_user

__all__ = ["Oidc"]

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_SECONDS = 5.0
_LARGEST = 1 << 20
_KEPT = 600.0  # seconds for which the issuer's documents are kept
_SOONEST = 30.0  # minimum seconds between two readings of its keys
_LEEWAY = 30


class Oidc:
    """`redirect` is our address, to which the issuer sends the browser back; `secret` is empty for a public client."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        *,
        redirect: str,
        secret: str = "",
        user_claim: str = "preferred_username",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        if not client_id:
            raise SettingsError("service.oidc_issuer is set, but not service.oidc_client_id")
        if urlsplit(issuer).scheme != "https" and not _is_loopback(issuer):
            raise SettingsError(f'service.oidc_issuer is "{issuer}"; it must begin with https://')
        self._issuer, self._client_id, self._redirect = issuer, client_id, redirect
        self._secret, self._user_claim, self._now = secret, user_claim, now
        self._found: dict[str, Any] = {}
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = {"configuration": -_KEPT, "keys": -_KEPT}

    async def begin(self) -> tuple[str, str]:
        """Where to send the browser, and what it must return in a cookie."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._redirect,
            "scope": "openid profile",
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        address = await self._endpoint("authorization_endpoint")
        joint = "&" if urlsplit(address).query else "?"
        return f"{address}{joint}{urlencode(query)}", f"{state}.{nonce}.{verifier}"

    async def finish(self, *, code: str, state: str, flow: str) -> str:
        """The user, once the issuer has sent the browser back with a code."""
        parts = flow.split(".")
        if len(parts) != 3 or not code or not hmac.compare_digest(parts[0].encode(), state.encode()):
            raise Unauthenticated("this login was not begun in this browser, or took too long; log in again")
        _, nonce, verifier = parts
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect,
            "client_id": self._client_id,
            "code_verifier": verifier,
        }
        if self._secret:
            form["client_secret"] = self._secret
        reply = await self._ask(await self._endpoint("token_endpoint"), form)
        claims = await self._verified(str(reply.get("id_token", "")), nonce)
        user = claims.get(self._user_claim)
        return checked_user(user if isinstance(user, str) else "", f"the claim {self._user_claim}")

    async def _verified(self, token: str, nonce: str) -> dict[str, Any]:
        try:
            head = jwt.get_unverified_header(token)
            if head.get("alg") not in ALGORITHMS:
                raise jwt.InvalidAlgorithmError("the algorithm is not one with a public key")
            claims: dict[str, Any] = jwt.decode(
                token,
                await self._key(str(head.get("kid", ""))),
                algorithms=ALGORITHMS,
                audience=self._client_id,
                issuer=self._issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise Unauthenticated(
                f"the identity provider's token is not valid: {type(error).__name__}"
            ) from None
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise Unauthenticated("the identity provider's token belongs to another login")
        if claims.get("azp", self._client_id) != self._client_id:
            raise Unauthenticated("the identity provider's token was made for another service")
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        since = self._now() - self._read_at["keys"]
        if since > _KEPT or (kid not in self._keys and since > _SOONEST):
            document = await self._ask(await self._endpoint("jwks_uri"))
            self._keys = {str(key.key_id or ""): key for key in jwt.PyJWKSet.from_dict(document).keys}
            self._read_at["keys"] = self._now()
        if kid not in self._keys:
            raise jwt.InvalidKeyError("unknown key")
        return self._keys[kid]

    async def _endpoint(self, name: str) -> str:
        """An address from the issuer's own configuration; one at another host is refused."""
        if self._now() - self._read_at["configuration"] > _KEPT:
            found = await self._ask(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self._issuer:
                raise Unauthenticated("the identity provider's configuration names another issuer")
            self._found, self._read_at["configuration"] = found, self._now()
        address = str(self._found.get(name, ""))
        if _origin(address) != _origin(self._issuer):
            raise Unauthenticated(f"the identity provider's {name} is not at the issuer itself")
        return address

    async def _ask(self, address: str, form: dict[str, str] | None = None) -> dict[str, Any]:
        """Fetch a JSON reply of bounded size, within a total deadline; without redirects or the environment's proxy."""
        method = "GET" if form is None else "POST"
        body = bytearray()
        try:
            async with (
                asyncio.timeout(_SECONDS),
                httpx2.AsyncClient(trust_env=False, timeout=_SECONDS) as client,
                client.stream(method, address, data=form, headers={"accept": "application/json"}) as reply,
            ):
                async for chunk in reply.aiter_bytes():
                    body += chunk
                    if len(body) > _LARGEST:
                        raise Unauthenticated("the identity provider's reply is too long")
        except (httpx2.HTTPError, TimeoutError):
            raise Unauthenticated(
                "the identity provider does not answer; try again, or use tocsin login"
            ) from None
        if reply.status_code != 200:
            raise Unauthenticated(f"the identity provider refused this login (HTTP {reply.status_code})")
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise Unauthenticated("the identity provider's reply is not JSON")
        return document


def _origin(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    return parts.scheme, parts.netloc


def _is_loopback(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    try:
        return host == "localhost" or Peer(address=host).loopback
    except ValueError:
        return False
