"""Verdicts and cases as server-sent events."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from tocsin.app.feed import position_of
from tocsin.serve.dependencies import Asker
from tocsin.serve.event_stream import EventStream
from tocsin.serve.problems import ANY_PROBLEM

if TYPE_CHECKING:
    from tocsin.serve.broadcast import Broadcast

__all__ = ["router"]

router = APIRouter(tags=["events"])

_EXAMPLE = (
    'id: 1201-3\nevent: verdict\ndata: {"job":"lab:4711@1794775393","stage":"submit","level":"warning"}\n\n'
)


@router.get(
    "/events",
    response_class=EventStream,
    status_code=200,
    responses={
        200: {
            "description": "A stream of ten minutes; comments keep it alive",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        },
        **ANY_PROBLEM,
    },
)
async def events(
    request: Request,
    asker: Asker,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    since: Annotated[
        str | None,
        Query(
            max_length=100, description="Resume after this event, as Last-Event-ID does; for a first request."
        ),
    ] = None,
) -> Response:
    """Verdicts and cases as they are stored; users get the verdicts on their own jobs.

    `Last-Event-ID` resumes after that event. A stream ends after ten minutes, and at once if its client does not keep up;
    the client can resume the same way.
    """
    broadcast: Broadcast = request.app.state.broadcast
    text = last_event_id or since
    position = position_of(text) if text else await run_in_threadpool(broadcast.last)
    return EventStream(broadcast, asker, position)
