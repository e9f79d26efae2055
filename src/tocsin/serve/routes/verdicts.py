"""Verdicts, newest first."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tocsin.app.feed import list_verdicts
from tocsin.core.errors import InputError
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level
from tocsin.serve.dependencies import Asker, Cursor, Limit, TheApp, comma_separated
from tocsin.serve.documents import VERDICT, page_of, ref, reply
from tocsin.serve.replies import cursor_of, cursor_text, json_reply
from tocsin.serve.visible import own_users, visible

__all__ = ["router"]

router = APIRouter(tags=["verdicts"])

Words = Annotated[str | None, Query(max_length=2000)]


@router.get(
    "/verdicts", responses=reply({"verdicts": [VERDICT], "next": None}, page_of("verdicts", ref("Verdict")))
)
def verdicts(
    request: Request,
    app: TheApp,
    asker: Asker,
    level: Annotated[Words, Query(description="ok, warning, critical, unknown, separated by commas.")] = None,
    stage: Annotated[
        Words, Query(description="submit, start, early, running, end, separated by commas.")
    ] = None,
    user: Words = None,
    cluster: Words = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Verdicts on all jobs, the newest first; users see those on their own."""
    users = own_users(asker, comma_separated(user))
    last = cursor_of(cursor, int)
    found = (
        []
        if users is None
        else list_verdicts(
            app,
            levels=_members(level, Level, "a level"),
            stages=_members(stage, Stage, "a stage"),
            users=users,
            clusters=comma_separated(cluster),
            before=last[0] if last else None,
            size=limit,
        )
    )
    more = cursor_text(found[-1][0]) if found and len(found) == limit else None
    return json_reply(
        request, {"verdicts": [visible(document, asker) for _, document in found], "next": more}
    )


def _members(text: str | None, kind: type[Level] | type[Stage], what: str) -> list[str]:
    names = [str(each) for each in kind]
    for word in comma_separated(text):
        if word not in names:
            raise InputError(f'"{word[:60]}" is not {what}; write some of {", ".join(names)}')
    return comma_separated(text)
