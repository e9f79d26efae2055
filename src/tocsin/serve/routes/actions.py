"""Actions on jobs, and their undo."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.actions import ActionRequest, list_actions, undo
from tocsin.serve.asking import Asker, Limit, TheApp
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.visible import require

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
Number = Annotated[int, Path(ge=1, le=2**62)]


class Undo(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"note": "agreed with the group's PI"}}
    )

    note: str = Field("", max_length=2000, description="The reason, kept in the audit.")


@router.get("/actions", responses=reply({"actions": [_ACTION]}))
def actions(
    request: Request,
    app: TheApp,
    asker: Asker,
    ended: Annotated[bool, Query(description="Also shadow, control, failed and ended ones.")] = False,
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
