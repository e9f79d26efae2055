"""Dependencies of every route: the service, and who is asking.

They are coroutines although they await nothing: FastAPI would run each plain function in a thread.
"""

from typing import Annotated

from fastapi import Depends, Path, Query, Request
from fastapi.dependencies.models import Dependant

from tocsin.app.app import App
from tocsin.app.service import Service
from tocsin.core.errors import InputError, Unauthenticated
from tocsin.serve.principal import Principal

__all__ = [
    "Asker",
    "Cluster",
    "Cursor",
    "JobName",
    "Limit",
    "TheApp",
    "TheService",
    "comma_separated",
    "known_parameters",
]


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


def _parameters(dependant: Dependant) -> set[str]:
    return {field.alias for field in dependant.query_params}.union(*map(_parameters, dependant.dependencies))


async def known_parameters(request: Request) -> None:
    """Refuse a parameter that the route does not have: ignored, a slip such as `stat=F` would list all jobs."""
    if not request.query_params:
        return
    known = _parameters(request.scope["route"].dependant)
    for name in request.query_params:
        if name not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise InputError(f'"{name[:100]}" is not a parameter of this request; {has}')


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
