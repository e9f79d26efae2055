"""Check a script before it is submitted."""

from asyncio import wrap_future
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.check import ScriptQuestion
from tocsin.core.errors import Forbidden
from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.documents import VERDICT, ref, reply
from tocsin.serve.problems import ANY_PROBLEM
from tocsin.serve.verdict_text import verdict_advice, verdict_json

__all__ = ["router"]

router = APIRouter(tags=["check"])

LARGEST = 4 << 20
"""Characters of a script; sbatch takes 4 MiB."""

_ADVICE = "tocsin: critical: no node has 5000G of memory\ntocsin:   → request at most 512G\n"


class Question(BaseModel):
    """A script as it would be submitted."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "script": "#!/bin/bash\n#SBATCH --time=18:00:00 --mem=5000G\nsrun lmp -in water.in\n",
                "options": ["--partition=main"],
                "cluster": "lab",
            }
        },
    )

    script: str = Field(max_length=LARGEST, description="The text of the script; nothing in it is run.")
    options: list[Annotated[str, Field(max_length=4096)]] = Field(
        default_factory=list, max_length=200, description="Options of the submission, such as --time=60."
    )
    path: str | None = Field(None, max_length=4096, description="Path of the script; only its name is used.")
    work_dir: str | None = Field(None, max_length=4096, description="Working directory of the job.")
    user: str | None = Field(None, max_length=100, description="Check as a job of this user; operators only.")
    account: str | None = Field(None, max_length=200, description="Account to be charged.")
    explain: bool = Field(
        False,
        description="Explain everything: contributions, similar jobs and advice. Alarms are always explained.",
    )
    cluster: str | None = Field(
        None, max_length=100, description="Name of the cluster, if the service follows several."
    )


@router.post("/check", responses=reply(VERDICT, ref("Verdict")))
async def check(service: TheService, asker: Asker, asked: Question) -> Response:
    """The verdict on a script as if it were submitted now. Nothing is run or stored, and no case is opened."""
    if asked.user not in (None, asker.user) and not asker.is_operator:
        raise Forbidden(f"only operators may check as {asked.user}; you are {asker.user}")
    question = ScriptQuestion(
        text=asked.script,
        user=asked.user or asker.user,
        path=asked.path or None,
        options=tuple(asked.options),
        account=asked.account or None,
        work_dir=asked.work_dir,
        explain=asked.explain,
    )
    found = service.check(question, asked.cluster, partial(verdict_json, asker))
    return Response(await wrap_future(found), media_type="application/json")


@router.post(
    "/advice",
    response_class=PlainTextResponse,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _ADVICE}}},
        **ANY_PROBLEM,
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "text/x-shellscript": {
                    "schema": {"type": "string", "maxLength": LARGEST},
                    "example": "#!/bin/bash\n#SBATCH --mem=5000G\nsrun ./a.out\n",
                }
            },
        }
    },
)
async def advice(
    request: Request,
    service: TheService,
    asker: Asker,
    option: Annotated[
        list[Annotated[str, Field(max_length=4096)]] | None,
        Query(max_length=200, description="Options of the submission, such as --time=60."),
    ] = None,
) -> PlainTextResponse:
    """Advice on a script in a few lines, as sbatch prints them at a terminal; empty if nothing is wrong."""
    text = (await request.body()).decode("utf-8", "replace")[:LARGEST]
    question = ScriptQuestion(text=text, user=asker.user, options=tuple(option or ()), explain=False)
    found = service.check(question, None, partial(verdict_advice, asker))
    return PlainTextResponse(await wrap_future(found))
