"""How a relay signs the name of its user, valid for one request and a short time."""

import hashlib
import hmac

__all__ = ["SIGNATURE", "USER", "VALID_SECONDS", "is_signed", "sign"]

USER = "X-Tocsin-Relay-User"
SIGNATURE = "X-Tocsin-Relay-Signature"
VALID_SECONDS = 60


def sign(token: str, *, at: int, user: str, method: str, target: str) -> str:
    """`TIME:HEX`, by HMAC-SHA-256 with the relay's token."""
    text = "\n".join(("tocsin relay", str(at), user, method, target))
    return f"{at}:{hmac.new(token.encode(), text.encode('utf-8', 'replace'), hashlib.sha256).hexdigest()}"


def is_signed(signature: str, token: str, *, now: int, user: str, method: str, target: str) -> bool:
    moment = signature.partition(":")[0]
    if not (moment.isascii() and moment.isdecimal() and len(moment) < 16):
        return False
    at = int(moment)
    expected = sign(token, at=at, user=user, method=method, target=target)
    return abs(now - at) <= VALID_SECONDS and hmac.compare_digest(signature.encode(), expected.encode())
