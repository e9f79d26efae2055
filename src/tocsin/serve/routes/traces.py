"""CPU traces of a job: how unusual its windows are, and where they lie among others."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tocsin.app.traces_of_job import JobRequest
from tocsin.app.traces_view import job_embeddings, job_windows
from tocsin.serve.dependencies import Asker, Cluster, JobName, TheApp
from tocsin.serve.documents import reply
from tocsin.serve.principal import Principal
from tocsin.serve.replies import json_reply
from tocsin.serve.routes.jobs import own_job
from tocsin.serve.visible import visible_points

__all__ = ["router"]

router = APIRouter(tags=["traces"])

Time = Annotated[str | None, Query(max_length=100, description="A time in a form that sacct accepts.")]
_WINDOW = {"node": "n1", "cpu": 0, "at": "2026-11-15T20:43:13Z", "error": 0.4, "unusual": True}


@router.get(
    "/jobs/{job}/traces",
    responses=reply({"job": "lab:4711@1794775393", "model": "2", "threshold": 0.3, "windows": [_WINDOW]}),
)
def windows(
    request: Request,
    app: TheApp,
    asker: Asker,
    job: JobName,
    cluster: Cluster = None,
    start: Time = None,
    end: Time = None,
) -> Response:
    """The windows of a job with the model's error on each, the worst first; by default of its last hour."""
    return json_reply(request, job_windows(app, _own(app, asker, job, cluster, start, end)))


@router.get(
    "/jobs/{job}/embeddings",
    responses=reply({"job": "lab:4711@1794775393", "points": [{"x": 0.1, "y": -2.0, "mine": True}]}),
)
def embeddings(
    request: Request,
    app: TheApp,
    asker: Asker,
    job: JobName,
    cluster: Cluster = None,
    start: Time = None,
    end: Time = None,
) -> Response:
    """The windows of a job in the plane in which they and those of other jobs differ most."""
    found = job_embeddings(app, _own(app, asker, job, cluster, start, end))
    return json_reply(request, visible_points(found, asker))


def _own(
    app: TheApp, asker: Principal, job: str, cluster: str | None, start: str | None, end: str | None
) -> JobRequest:
    return JobRequest(job=own_job(app, asker, job, cluster), cluster=cluster, starttime=start, endtime=end)
