"""Actions on jobs and their undo; what owners may do to their own jobs."""

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.actions import ActionRequest, actions_on, list_actions, undo
from tocsin.app.own_jobs import cancel_job, link_own_jobs, resubmissions
from tocsin.core.errors import InputError
from tocsin.serve.dependencies import Asker, Cluster, JobName, Limit, TheApp
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.routes.jobs import own_jobs
from tocsin.serve.visible import require, visible_actions

__all__ = ["router"]

router = APIRouter(tags=["actions"])

_ACTION = {
    "action": 7,
    "job": "lab:4711@1794775393",
    "kind": "hold",
    "status": "done",
    "at": "2026-11-15T20:43:14Z",
    "expires": "2026-11-16T20:43:14Z",
    "user": "ann",
    "reason": "cryptomining is not allowed for the account chem",
}
_RESUBMISSION = {
    "old": "lab:4711@1794775393",
    "new": "lab:4730@1794779001",
    "who": "ann",
    "risk_before": 0.84,
    "risk_after": 0.12,
    "at": "2026-11-15T21:43:21Z",
}
Number = Annotated[int, Path(ge=1, le=2**62)]


class Undo(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"note": "agreed with the group's PI"}}
    )

    note: str = Field("", max_length=2000, description="The reason, kept in the audit trail.")


class JobAction(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"action": "cancel"}})

    action: Literal["cancel", "resubmitted"] | None = Field(
        default=None,
        description="cancel: cancel the job now. resubmitted: link it to a later submission of the same job.",
    )
    new: str | None = Field(
        default=None, max_length=200, description="For resubmitted: id or key of the new job."
    )


_NO_ACTION = JobAction(action=None, new=None)
"""Used until ownership is checked: that comes before what is to be done."""


@router.get("/jobs/{job}/actions", responses=reply({"actions": [_ACTION], "resubmissions": [_RESUBMISSION]}))
def job_actions(
    request: Request, app: TheApp, asker: Asker, job: JobName, cluster: Cluster = None
) -> Response:
    """What was done to a job, and its later submissions; operators also see what was only planned or recorded."""
    keys = [str(each.key) for each in own_jobs(app, asker, job, cluster)]
    found = [action.to_json() for action in actions_on(app, keys)]
    later = [each.to_json() for each in resubmissions(app, *keys)]
    return json_reply(request, {"actions": visible_actions(found, asker), "resubmissions": later})


@router.post("/jobs/{job}/actions", responses=reply({"actions": [_ACTION], "resubmissions": [_RESUBMISSION]}))
def act_on_job(
    request: Request,
    app: TheApp,
    asker: Asker,
    job: JobName,
    cluster: Cluster = None,
    given: Annotated[JobAction, Body()] = _NO_ACTION,
) -> Response:
    """Cancel a job of your own, or link it to its later submission; operators may do so for others.

    The service never submits jobs: it has the rights of an operator, not of the user. `tocsin resubmit` does.
    """
    own_jobs(app, asker, job, cluster)
    who, operator = asker.user, asker.is_operator
    if given.action is None:
        raise InputError('name the action: {"action": "cancel"} or {"action": "resubmitted", "new": JOB}')
    if given.action == "cancel":
        done = cancel_job(app, job, who=who, operator=operator, cluster=cluster)
        shown = visible_actions([done.to_json()], asker)
        return json_reply(request, {"actions": shown, "resubmissions": []})
    if given.new is None:
        raise InputError('name the new job: {"action": "resubmitted", "new": JOB}')
    own_jobs(app, asker, given.new, cluster)
    linked = link_own_jobs(app, job, given.new, who=who, operator=operator)
    return json_reply(request, {"actions": [], "resubmissions": [linked.to_json()]})


@router.get("/actions", responses=reply({"actions": [_ACTION]}))
def actions(
    request: Request,
    app: TheApp,
    asker: Asker,
    ended: Annotated[bool, Query(description="Include shadow, control, failed and ended actions.")] = False,
    user: Annotated[str | None, Query(max_length=100, description="Only jobs of this user.")] = None,
    limit: Limit = 100,
) -> Response:
    """Actions that are planned or in force, the newest last."""
    require(asker, Role.OPERATOR, "listing actions")
    found = list_actions(app, ActionRequest(everything=ended, user=user, limit=limit))
    return json_reply(request, {"actions": [action.to_json() for action in found]})


@router.post("/actions/{action}/undo", responses=reply(_ACTION))
def undo_action(request: Request, app: TheApp, asker: Asker, action: Number, given: Undo) -> Response:
    """Release a held job, or end a lease; the job gets its own earliest start back."""
    require(asker, Role.OPERATOR, "undoing an action")
    [undone] = undo(app, [action], note=given.note, who=asker.user)
    return json_reply(request, undone.to_json())
