"""Long-running work in child processes (back-tests, profiles, trainings, contests): start it, then fetch its result."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.tasks import Kind, Task
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage
from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.visible import require

__all__ = ["router"]

router = APIRouter(tags=["tasks"])

_TASK = {
    "id": "5f3c9a",
    "kind": "backtest",
    "state": "running",
    "request": {"cluster": "lab"},
    "who": "ann",
    "created": "2026-11-15T20:43:13Z",
    "ended": None,
    "progress": {"label": "walking", "done": 3, "of": 12},
    "error": None,
    "result": None,
}
Number = Annotated[str, Path(max_length=100)]


class _Jobs(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"cluster": "lab"}})

    cluster: str | None = Field(None, max_length=100)


class _Failure(_Jobs):
    stage: Literal[Stage.SUBMIT, Stage.START, Stage.EARLY] = Stage.SUBMIT
    target: Target | None = None
    trials: int = Field(4, ge=1, le=200, description="Trials of each parameter search.")
    rule: str = Field("precision_at_least=0.8", max_length=100)


class Backtest(_Failure):
    train_days: float | None = Field(None, gt=0, le=100_000, allow_inf_nan=False)
    every_days: float = Field(7.0, ge=0.01, le=100_000, allow_inf_nan=False)
    audit: bool = Field(False, description="Prove that no prediction used the future.")


class Training(_Failure):
    promote: bool = Field(False, description="Use the new model at once.")


class Profiles(_Jobs):
    kind: Literal["request", "usage"] = "request"
    method: Literal["mixture", "kmeans"] = "mixture"
    k: int | None = Field(None, ge=1, le=100)


class Contest(_Jobs):
    detectors: list[Annotated[str, Field(max_length=100)]] = Field(
        [],
        max_length=20,
        description="Retrain only these detectors, due or not; by default all that are due.",
    )
    dry_run: bool = Field(False, description="Show drift and what would be done; train and change nothing.")


def _routes(path: str, kind: Kind, model: type[BaseModel], what: str) -> None:
    """The same four routes for each kind."""

    def begin(request: Request, service: TheService, asker: Asker, wanted: Any) -> Response:
        require(asker, Role.OPERATOR, what)
        document = wanted.model_dump(mode="json", exclude_none=True)
        task = service.tasks.start(kind, document, who=asker.user)
        answer = json_reply(request, task.to_json(), status=202)
        answer.headers["Location"] = f"{request.url.path}/{task.id}"
        return answer

    def every(request: Request, service: TheService, asker: Asker) -> Response:
        require(asker, Role.OPERATOR, what)
        return json_reply(request, {path: [_short(task) for task in service.tasks.list(kind)]})

    def one(request: Request, service: TheService, asker: Asker, number: Number) -> Response:
        require(asker, Role.OPERATOR, what)
        return json_reply(request, service.tasks.get(kind, number).to_json())

    def cancel(request: Request, service: TheService, asker: Asker, number: Number) -> Response:
        require(asker, Role.OPERATOR, what)
        return json_reply(request, _short(service.tasks.cancel(kind, number)))

    begin.__annotations__["wanted"] = model
    add = router.add_api_route
    add(f"/{path}", begin, methods=["POST"], status_code=202, summary=f"Start {what}",
        responses=reply(_TASK, status=202, text="Started, or waiting for a worker"))  # fmt: skip
    add(
        f"/{path}",
        every,
        methods=["GET"],
        summary=f"List {path}, the newest first",
        responses=reply({path: [_TASK]}),
    )
    add(
        f"/{path}/{{number}}",
        one,
        methods=["GET"],
        summary="State, progress and result",
        responses=reply(_TASK),
    )
    add(f"/{path}/{{number}}", cancel, methods=["DELETE"], summary="Cancel it", responses=reply(_TASK))


def _short(task: Task) -> dict[str, Any]:
    return {name: value for name, value in task.to_json().items() if name != "result"}


_routes("backtests", Kind.BACKTEST, Backtest, "a back-test")
_routes("profiles", Kind.PROFILES, Profiles, "the search for profiles")
_routes("trainings", Kind.TRAINING, Training, "a training")
_routes("contests", Kind.CONTEST, Contest, "a contest of new models with those in use")
