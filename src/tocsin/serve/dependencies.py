"""Dependencies of every route: the service, and who is asking.

They are coroutines although they await nothing: FastAPI would run each plain function in a thread.
"""

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from tocsin.app.app import App
from tocsin.app.service import Service
from tocsin.core.errors import Unauthenticated
from tocsin.serve.principal import Principal

__all__ = ["Asker", "Cluster", "Cursor", "JobName", "Limit", "TheApp", "TheService", "comma_separated"]


async def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _app(request: Request) -> App:
    service: Service = request.app.state.service
    return service.app


async def _principal(request: Request) -> Principal:
    found = getattr(request.state, "principal", None)
    if not isinstance(found, Principal):
        raise Unauthenticated("the request has no identified user")
    return found


def comma_separated(text: str | None) -> list[str]:
    """The items of a comma-separated list."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


TheService = Annotated[Service, Depends(_service)]
TheApp = Annotated[App, Depends(_app)]
Asker = Annotated[Principal, Depends(_principal)]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of entries in one reply.")]
Cursor = Annotated[
    str | None,
    Query(max_length=400, description="`next` of the previous reply; leave it out for the first one."),
]
Cluster = Annotated[str | None, Query(max_length=100, description="Name of the cluster.")]
JobName = Annotated[
    str, Path(max_length=200, description="An id such as 17 or 17_4, or a key such as lab:17_4@1794775393.")
]
