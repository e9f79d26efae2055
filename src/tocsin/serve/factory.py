"""The HTTP application of a service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import Depends, FastAPI
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from tocsin.app.service import Service
from tocsin.serve import documents, problems
from tocsin.serve.broadcast import Broadcast
from tocsin.serve.dependencies import known_parameters
from tocsin.serve.identity.setup import secured
from tocsin.serve.metrics import API, Measured, Metrics
from tocsin.serve.routes import (
    actions,
    allow,
    cases,
    check,
    clusters,
    events,
    health,
    job_page,
    jobs,
    learning,
    models,
    pages,
    tasks,
    traces,
    verdicts,
)

__all__ = ["create", "routes"]

_ROUTERS = (check, jobs, verdicts, cases, allow, models, learning, tasks, traces, clusters, events, actions)
"""Routes are matched in this order; script checks are the most frequent."""


def routes(service: Service, broadcast: Broadcast, metrics: Metrics) -> FastAPI:
    """All routes. `scope["state"]["principal"]` must be set before: nothing is authenticated here."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        reading = asyncio.create_task(broadcast.run())
        try:
            yield
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading

    app = FastAPI(title="tocsin", docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.service, app.state.broadcast, app.state.metrics = service, broadcast, metrics
    # Included one by one: nested routers would be matched four times for each request.
    for router in (*(module.router for module in _ROUTERS), health.api):
        app.include_router(router, prefix=API, dependencies=[Depends(known_parameters)])
    app.include_router(health.public)
    app.include_router(pages.router)
    app.include_router(job_page.router)
    app.mount("/static", StaticFiles(directory=pages.FOLDER / "static"))
    problems.install(app)
    documents.describe(app)
    return app


def create(service: Service, broadcast: Broadcast, metrics: Metrics, *, url: str) -> ASGIApp:
    """The application as the server runs it: metrics, the gate, then the routes. `url`: where it listens."""
    inner = routes(service, broadcast, metrics)
    return Measured(secured(inner, service.app, url=url, demo=service.request.demo), metrics)
