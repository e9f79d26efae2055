"""Cases that people look into, and their answers."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.cases import answer_cases, page_of_cases, show_case
from tocsin.core.verdict import CaseStatus
from tocsin.serve.dependencies import Asker, Cursor, Limit, TheApp
from tocsin.serve.documents import page_of, reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import cursor_of, cursor_text, json_reply
from tocsin.serve.visible import require

__all__ = ["router"]

router = APIRouter(tags=["cases"])

_CASE = {
    "case": 3,
    "status": "open",
    "cause": "workload:rogue:lab:ann:cryptomining",
    "job": "lab:4711@1794775393",
    "opened": "2026-11-15T20:43:14Z",
    "user": "ann",
    "account": "chem",
    "answers": [],
}
Number = Annotated[int, Path(ge=1, le=2**62)]


class Feedback(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"answer": "dismissed", "note": "a course on blockchains"}},
    )

    answer: CaseStatus = Field(description="confirmed, dismissed, or open to reopen it")
    note: str = Field("", max_length=2000)


@router.get("/cases", responses=reply({"cases": [_CASE], "next": None}, page_of("cases", {"type": "object"})))
def list_cases(
    request: Request,
    app: TheApp,
    asker: Asker,
    status: Annotated[
        CaseStatus | None, Query(description="Only cases with this status; leave it out for all.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Cases, the newest first."""
    require(asker, Role.OPERATOR, "listing cases")
    last = cursor_of(cursor, int)
    found = page_of_cases(app, status, before=last[0] if last else None, size=limit)
    more = cursor_text(found[-1].id) if found and len(found) == limit else None
    return json_reply(request, {"cases": [case.to_json() for case in found], "next": more})


@router.get(
    "/cases/{case}",
    responses=reply(
        {
            **_CASE,
            "jobs": [],
            "lines": [{"line": 9, "text": "srun ./lmp -o pool"}],
            "scripts": [],
            "other_cases": [4],
        }
    ),
)
def one_case(request: Request, app: TheApp, asker: Asker, case: Number) -> Response:
    """One case with its jobs, the lines of its scripts and all answers; other cases of the same group, by number."""
    require(asker, Role.OPERATOR, "a case")
    return json_reply(request, show_case(app, case).to_json())


@router.post("/cases/{case}/feedback", responses=reply(_CASE))
def feedback(request: Request, app: TheApp, asker: Asker, case: Number, given: Feedback) -> Response:
    """Confirm or dismiss a case; the last answer counts, and models learn from it."""
    require(asker, Role.OPERATOR, "answering a case")
    [answered] = answer_cases(app, [case], given.answer, given.note, who=asker.user)
    return json_reply(request, answered.to_json())
