"""JSON replies with ETags, and opaque cursors."""

import base64
import binascii
import hashlib
import json
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from tocsin.core.errors import InputError
from tocsin.serve.verdict_text import json_text

__all__ = ["cursor_of", "cursor_text", "json_reply"]

_MOST = 400


def json_reply(request: Request, document: Any, *, status: int = 200) -> Response:
    """The document, or 304 if the client has it already."""
    body = json_text(document)
    if request.method != "GET":
        return Response(body, status, media_type="application/json")
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known or "*" in known:
        return Response(None, 304, headers)
    return Response(body, status, headers, "application/json")


def cursor_text(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def cursor_of(text: str | None, *kinds: type | tuple[type, ...]) -> list[Any] | None:
    """The values of a cursor, which must be of these types; None without a cursor."""
    if text is None:
        return None
    try:
        if len(text) > _MOST:
            raise ValueError
        values = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True))
        good = len(values) == len(kinds) and all(map(_fits, values, kinds))
    except (ValueError, TypeError, binascii.Error, RecursionError):
        good = False
    if not good:
        raise InputError("this cursor is not valid; leave it out to start at the first entry")
    return list(values)


def _fits(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return not isinstance(value, int) or abs(value) < 2**62
