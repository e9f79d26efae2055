"""Errors as problem documents (RFC 9457)."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from tocsin.core.errors import TocsinError
from tocsin.core.problems import PREFIX, kind_of

__all__ = ["ANY_PROBLEM", "PROBLEM_SCHEMA", "install", "problem"]

_MEDIA_TYPE = "application/problem+json"
_AGAIN = {"Retry-After": "5"}
_MOST_ERRORS = 20
_CLIENT_GONE = 499
"""As nginx has it; HTTP defines no status for this."""
_NOT_JSON = "the body cannot be read as JSON; see /openapi.json"
"""FastAPI answers 400 for nothing else."""

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457); `detail` is a sentence with the value, the place and the next step.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
}
ANY_PROBLEM: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "An error",
        "content": {
            _MEDIA_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "example": {
                    "type": f"{PREFIX}not-found",
                    "title": "Not Found",
                    "status": 404,
                    "detail": "no job 4711 in the store; was it imported? `tocsin jobs` lists what is there",
                },
            }
        },
    }
}
"""The part of an operation's OpenAPI that describes its errors."""


def problem(
    status: int, detail: str, *, kind: str | None = None, headers: dict[str, str] | None = None, **more: Any
) -> JSONResponse:
    document = {
        "type": f"{PREFIX}{kind}" if kind else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **more,
    }
    return JSONResponse(document, status, headers, _MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    @app.exception_handler(TocsinError)
    def ours(_: Request, error: TocsinError) -> JSONResponse:
        kind, status = kind_of(error)
        return problem(status, str(error), kind=kind, headers=_AGAIN if status == 503 else None)

    @app.exception_handler(RequestValidationError)
    def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            {"place": ".".join(map(str, one["loc"])), "text": one["msg"]}
            for one in error.errors()[:_MOST_ERRORS]
        ]
        first = f"{found[0]['place']}: {found[0]['text']}" if found else "the request"
        return problem(422, f"invalid request: {first}; see /openapi.json", kind="bad-input", errors=found)

    @app.exception_handler(HTTPException)
    def framework(_: Request, error: HTTPException) -> JSONResponse:
        detail = _NOT_JSON if error.status_code == HTTPStatus.BAD_REQUEST else str(error.detail)
        return problem(error.status_code, detail, headers=dict(error.headers or {}))

    @app.exception_handler(ClientDisconnect)
    def gone(_request: Request, _error: ClientDisconnect) -> Response:
        """The client gave up before its request was complete. Nobody reads this reply; metrics count its status."""
        return Response(status_code=_CLIENT_GONE)

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> JSONResponse:
        logging.getLogger("tocsin.serve").error(
            "internal error in %s %s", request.method, request.url.path, exc_info=error
        )
        return problem(500, "an internal error; the log of the service has the details", kind="error")
