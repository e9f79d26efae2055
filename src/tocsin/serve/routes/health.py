"""Whether the service lives and is ready, and its metrics."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from tocsin import __version__
from tocsin.app.service import Service
from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.documents import reply

__all__ = ["api", "public"]

public = APIRouter(tags=["health"])
api = APIRouter(tags=["health"])

_REASON = {
    "part": "cluster lab",
    "ready": False,
    "text": "slurmrestd at http://localhost:6820 does not answer (connection refused)",
    "remedy": "run `tocsin doctor`, which tests each link to Slurm and the store",
}
_HEALTH = {"ready": False, "version": __version__, "reasons": [_REASON]}


@public.get(
    "/healthz", response_class=PlainTextResponse, responses={200: {"description": "The process is alive"}}
)
async def alive() -> Response:
    """Whether the process answers."""
    # A plain function would wait for a thread, and slow questions may hold all of them.
    return PlainTextResponse("ok\n")


@public.get(
    "/readyz",
    responses={
        **reply(_HEALTH),
        503: {
            "description": "Not ready",
            "content": {"application/json": {"schema": {"type": "object"}, "example": _HEALTH}},
        },
    },
)
def ready(service: TheService) -> Response:
    """Whether it can answer questions: 200 or 503, with reasons and remedies."""
    document = _health(service)
    return JSONResponse(document, 200 if document["ready"] else 503)


@public.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={200: {"description": "Metrics in the text format of Prometheus"}},
)
def metrics(request: Request) -> Response:
    """Metrics, without any name of a job or user."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@api.get("/health", responses=reply(_HEALTH))
def health(service: TheService, asker: Asker) -> Response:
    """The same as /readyz, but always with status 200."""
    del asker
    return JSONResponse(_health(service))


@api.get("/me", responses=reply({"user": "ann", "role": "operator", "method": "socket"}))
def me(asker: Asker) -> Response:
    """Who the service thinks you are."""
    return JSONResponse({"user": asker.user, "role": asker.role.name.lower(), "method": asker.method})


def _health(service: Service) -> dict[str, Any]:
    reasons = list(service.reasons())
    return {
        "ready": all(reason.ready for reason in reasons),
        "version": __version__,
        "reasons": [reason.to_json() for reason in reasons],
    }
