"""The allow-list: who may run which operation."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.allow import AllowRequest, add_entry, entry_json, list_entries, remove_entry
from tocsin.serve.dependencies import Asker, TheApp
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.visible import require

__all__ = ["router"]

router = APIRouter(tags=["allow-list"])

_ENTRY = {
    "operation": "ai",
    "account": "ml-vision",
    "from": "2026-01-01T00:00:00Z",
    "until": None,
    "reason": "project 17",
    "granted_by": "root",
    "origin": "entry 4",
}


class Entry(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"operation": "ai", "kind": "account", "name": "ml-vision", "until": "2027-01-01"}
        },
    )

    operation: str = Field(max_length=100)
    kind: Literal["user", "account", "group"]
    name: str = Field(min_length=1, max_length=200)
    since: str | None = Field(None, max_length=100, description="A time in a form that sacct accepts.")
    until: str | None = Field(
        None, max_length=100, description="A time in a form that sacct accepts; a day is included."
    )
    reason: str = Field("", max_length=2000)


@router.get("/allow", responses=reply({"defaults": {"ai": "listed"}, "entries": [_ENTRY]}))
def list_allowed(
    request: Request,
    app: TheApp,
    asker: Asker,
    everything: Annotated[
        bool, Query(alias="all", description="Include expired and future entries.")
    ] = False,
) -> Response:
    """The rule for each operation, and the entries of the store and of the file."""
    require(asker, Role.OPERATOR, "the allow-list")
    rules = list_entries(app, everything=everything)
    entries = [entry_json(entry) for entry in rules.entries]
    return json_reply(request, {"defaults": dict(rules.defaults), "entries": entries})


@router.post("/allow", responses=reply({"entry": 4, **_ENTRY}, status=201), status_code=201)
def add(request: Request, app: TheApp, asker: Asker, wanted: Entry) -> Response:
    """Add an entry; an equal one that is in force is not doubled."""
    require(asker, Role.OPERATOR, "changing the allow-list")
    number, entry = add_entry(app, AllowRequest(**wanted.model_dump()), who=asker.user)
    return json_reply(request, {"entry": number, **entry_json(entry)}, status=201)


@router.delete("/allow/{entry}", responses=reply(_ENTRY))
def end(request: Request, app: TheApp, asker: Asker, entry: Annotated[int, Path(ge=1, le=2**62)]) -> Response:
    """End an entry now; it still counts for jobs that were submitted before."""
    require(asker, Role.OPERATOR, "changing the allow-list")
    return json_reply(request, entry_json(remove_entry(app, entry, who=asker.user)))
