"""A stand-in for an OpenID Connect issuer, in a process of its own: logs everybody in as `ann`, as PKCE asks.

The query of the authorization address is the contract; `/fault?NAME` makes the next token wrong in one way.
"""

import base64
import hashlib
import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

KEY, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
CODES: dict[str, dict[str, str]] = {}
FAULT = [""]


class Issuer(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        """Nothing: the test reads stdout."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply(self, document: object, status: int = 200, location: str = "") -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/fault":
            FAULT[0] = parts.query
            self.reply({})
        elif parts.path == "/.well-known/openid-configuration":
            keys = "http://127.0.0.2:9/keys" if FAULT[0] == "keys-elsewhere" else f"{self.url}/keys"
            issuer = "https://evil.example" if FAULT[0] == "configuration-of-another" else self.url
            endpoints = {"authorization_endpoint": f"{self.url}/auth", "token_endpoint": f"{self.url}/token"}
            self.reply({"issuer": issuer, "jwks_uri": keys, **endpoints})
        elif parts.path == "/keys":
            key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
            self.reply({"keys": [key | {"kid": "k1", "use": "sig", "alg": "RS256"}]})
        elif parts.path == "/auth":
            code = f"code-{len(CODES)}"
            CODES[code] = query
            back = {"code": code, "state": query["state"]}
            self.reply({}, 302, f"{query['redirect_uri']}?{urlencode(back)}")
        else:
            self.reply({}, 404)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(text).items()}
        asked = CODES.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest())
        if asked is None or challenge.rstrip(b"=").decode() != asked["code_challenge"]:
            self.reply({"error": "invalid_grant"}, 400)
        elif form.get("client_secret") != "hush" or form["redirect_uri"] != asked["redirect_uri"]:
            self.reply({"error": "invalid_client"}, 401)
        else:
            self.reply({"id_token": self.token(asked), "token_type": "Bearer"})

    def token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": asked["client_id"],
            "sub": "4711",
            "iat": now,
            "exp": now + 60,
            "nonce": asked["nonce"],
            "preferred_username": "ann",
        }
        fault, key, algorithm = FAULT[0], KEY, "RS256"
        claims |= {
            "issuer": {"iss": "https://evil.example"},
            "audience": {"aud": "another"},
            "audience-of-two": {"aud": ["tocsin", "another"], "azp": "another"},
            "expired": {"exp": now - 60},
            "nonce": {"nonce": "another"},
            "user": {"preferred_username": "x' OR 1=1 --"},
            "no-user": {"preferred_username": None},
        }.get(fault, {})
        if fault == "no-expiry":
            del claims["exp"]
        if fault == "unsigned":
            return jwt.encode(claims, None, algorithm="none", headers={"kid": "k1"})
        if fault == "public-key-as-secret":
            return _hmac(claims)
        if fault == "signature":
            key = OTHER
        kid = "k2" if fault == "unknown-key" else "k1"
        return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid})


def _hmac(claims: dict[str, object]) -> str:
    """HS256 by hand: PyJWT refuses a public key as a secret, an attacker would not."""
    import hmac

    def part(value: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=")

    text = part({"alg": "HS256", "kid": "k1"}) + b"." + part(claims)
    signature = hmac.new(PUBLIC, text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    print(server.server_address[1], flush=True)
    server.serve_forever()
