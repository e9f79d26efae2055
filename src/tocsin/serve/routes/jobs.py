"""Jobs: a list with sacct's filters, one job, its life and script, and why its verdict is what it is."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from tocsin.app.jobs import JobsRequest, JobWithVerdicts, page_of_jobs, show_job
from tocsin.app.own_jobs import job_script
from tocsin.app.timeline import timeline
from tocsin.core.errors import NotFound
from tocsin.core.ids import JobKey
from tocsin.core.job_json import to_json
from tocsin.core.stages import Stage
from tocsin.serve.dependencies import (
    Asker,
    Cluster,
    Cursor,
    JobName,
    Limit,
    TheApp,
    TheService,
    comma_separated,
)
from tocsin.serve.documents import JOB, VERDICT, array_of, page_of, ref, reply
from tocsin.serve.principal import Principal
from tocsin.serve.replies import cursor_of, cursor_text, json_reply
from tocsin.serve.visible import own_users, visible

__all__ = ["own_job", "own_jobs", "router"]

router = APIRouter(tags=["jobs"])

Words = Annotated[str | None, Query(max_length=2000)]
_EXPLAINED = {
    "type": "object",
    "properties": {"verdict": ref("Verdict"), "outcome": {"type": ["string", "null"]}},
    "required": ["verdict", "outcome"],
}


@router.get("/jobs", responses=reply({"jobs": [JOB], "next": None}, page_of("jobs", ref("Job"))))
def list_jobs(
    request: Request,
    app: TheApp,
    asker: Asker,
    ids: Annotated[Words, Query(alias="id", description="17, 17_4 or 17_[1-3], separated by commas.")] = None,
    user: Words = None,
    account: Words = None,
    cluster: Words = None,
    partition: Words = None,
    state: Annotated[Words, Query(description="F,TO,OOM or full names.")] = None,
    name: Words = None,
    domain: Words = None,
    start: Annotated[Words, Query(description="Only jobs alive after this time, as `sacct -S`.")] = None,
    end: Annotated[Words, Query(description="Only jobs alive before this time, as `sacct -E`.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Jobs, the newest first, with the filters of sacct; users see their own."""
    users = own_users(asker, comma_separated(user))
    last = cursor_of(cursor, str, int, (int, type(None)), int)
    wanted = JobsRequest(
        ids=ids,
        users=users or (),
        accounts=comma_separated(account),
        clusters=comma_separated(cluster),
        partitions=comma_separated(partition),
        states=comma_separated(state),
        names=comma_separated(name),
        domains=comma_separated(domain),
        starttime=start,
        endtime=end,
    )
    rows = (
        []
        if users is None
        else page_of_jobs(app, wanted, past=JobKey(*last) if last else None, size=limit).to_dicts()
    )
    more = rows and len(rows) == limit
    key = (
        cursor_text(*(rows[-1][field] for field in ("cluster", "job_id", "task", "submit"))) if more else None
    )
    return json_reply(request, {"jobs": [to_json(row) for row in rows], "next": key})


@router.get(
    "/jobs/{job}",
    responses=reply(
        {"jobs": [{**JOB, "verdicts": [VERDICT]}]},
        {"type": "object", "properties": {"jobs": array_of(ref("Job"))}},
    ),
)
def one_job(request: Request, app: TheApp, asker: Asker, job: JobName, cluster: Cluster = None) -> Response:
    """Every submission and task that the id or key names, each with its verdicts."""
    documents = [
        {**to_json(each.row), "verdicts": [visible(verdict.to_json(), asker) for verdict in each.verdicts]}
        for each in own_jobs(app, asker, job, cluster)
    ]
    return json_reply(request, {"jobs": documents})


@router.get(
    "/jobs/{job}/timeline",
    responses=reply(
        {
            "timelines": [
                {
                    "job": JOB["job"],
                    "user": "ann",
                    "events": [
                        {"kind": "state", "change": "submitted", "at": "2026-11-15T20:43:13Z"},
                        {"kind": "verdict", "at": "2026-11-15T20:43:14Z", "verdict": VERDICT},
                    ],
                }
            ]
        }
    ),
)
def job_timeline(
    request: Request, app: TheApp, asker: Asker, job: JobName, cluster: Cluster = None
) -> Response:
    """Changes of state and verdicts, in order of time."""
    found = [timeline(each) for each in own_jobs(app, asker, job, cluster)]
    for each in found:
        each["events"] = [_event(event, asker) for event in each["events"]]
    return json_reply(request, {"timelines": found})


@router.get(
    "/jobs/{job}/verdicts",
    responses=reply(
        {"verdicts": [VERDICT]}, {"type": "object", "properties": {"verdicts": array_of(ref("Verdict"))}}
    ),
)
def job_verdicts(
    request: Request, app: TheApp, asker: Asker, job: JobName, cluster: Cluster = None
) -> Response:
    """The verdicts on a job, in the order in which they were given."""
    found = [
        visible(verdict.to_json(), asker)
        for each in own_jobs(app, asker, job, cluster)
        for verdict in each.verdicts
    ]
    return json_reply(request, {"verdicts": found})


@router.get(
    "/jobs/{job}/explanation", responses=reply({"verdict": VERDICT, "outcome": "out_of_memory"}, _EXPLAINED)
)
def explanation(
    request: Request,
    service: TheService,
    asker: Asker,
    job: JobName,
    cluster: Cluster = None,
    stage: Annotated[Stage, Query(description="Use what was known at this stage.")] = Stage.SUBMIT,
) -> Response:
    """The verdict on one job from what was known at a stage, with all evidence; it may take seconds."""
    found = service.explain(own_job(service.app, asker, job, cluster), cluster=cluster, stage=stage)
    return json_reply(request, {"verdict": visible(found.verdict.to_json(), asker), "outcome": found.outcome})


@router.get("/jobs/{job}/script", responses=reply({"script": "#!/bin/bash\nsrun ./a.out\n"}))
def script(app: TheApp, asker: Asker, job: JobName, cluster: Cluster = None) -> Response:
    """The script that a job was submitted with; bytes that are not UTF-8 are lone surrogates (as in Python)."""
    own_jobs(app, asker, job, cluster)
    text = job_script(app, job, who=asker.user, operator=asker.is_operator, cluster=cluster)
    return Response(json.dumps({"script": text}), media_type="application/json")


def own_jobs(app: TheApp, asker: Principal, job: str, cluster: str | None) -> list[JobWithVerdicts]:
    """The jobs that the person may see; for users, the jobs of others do not exist."""
    found = show_job(app, job, cluster, owner=None if asker.is_operator else asker.user)
    if not found:
        raise NotFound(f"no job {job} in the store; was it imported? `tocsin jobs` lists what is there")
    return found


def own_job(app: TheApp, asker: Principal, job: str, cluster: str | None) -> str:
    """The key of the only job with this name that the person may see.

    An id may also be that of somebody else's job, since a slurmctld that lost its state counts from the beginning.
    """
    keys = [str(each.key) for each in own_jobs(app, asker, job, cluster)]
    if len(keys) > 1:
        raise NotFound(f"{len(keys)} jobs have the id {job}; name a key that `tocsin job {job}` lists")
    return keys[0]


def _event(event: dict[str, Any], asker: Principal) -> dict[str, Any]:
    return {**event, "verdict": visible(event["verdict"], asker)} if event["kind"] == "verdict" else event
