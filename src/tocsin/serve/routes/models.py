"""Models and thresholds: versions with their cards, and which are in use."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from tocsin.app.champions import ModelRequest, challenge, promote, rollback
from tocsin.app.models import list_models, show_model
from tocsin.app.threshold import set_threshold, thresholds
from tocsin.core.errors import NotFound
from tocsin.core.stages import Stage
from tocsin.serve.dependencies import Asker, Cluster, TheApp, TheService
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.routes.learning import LIVE
from tocsin.serve.visible import require

__all__ = ["router"]

router = APIRouter(tags=["models"])

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.+-]*$"
Detector = Annotated[str, Path(max_length=100, pattern=_NAME)]
Version = Annotated[
    str, Path(max_length=100, pattern=_NAME, description="A version, champion or challenger.")
]
OfStage = Annotated[Stage | None, Query(description="Stage of the champion or challenger.")]
_CHANGE = {"detector": "failure", "stage": "submit", "cluster": None, "champion": "3", "before": "2"}
_MODEL = {
    "detector": "failure",
    "version": "3",
    "stage": "submit",
    "aliases": ["champion"],
    "trouble": None,
    "live": [LIVE],
}
_CHALLENGER = {"detector": "failure", "stage": "submit", "cluster": None, "challenger": "4", "before": None}
_TABLE = {"version": "3", "threshold": {"value": 0.62}, "table": []}


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"cluster": "lab"}})

    stage: Stage | None = None
    cluster: str | None = Field(None, max_length=100, description="For this cluster only.")


class Change(Place):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"why": "better on last week's jobs"}}
    )

    cluster: str | None = Field(
        None,
        max_length=100,
        description="For this cluster only. Without it, a change is for the store's only cluster if that has a champion of its "
        "own already, and for all clusters otherwise.",
    )
    why: str = Field("", max_length=2000)


class Rollback(Change):
    to_none: bool = Field(
        False, description="Return to the shipped model, or to none if there is no shipped one."
    )


class NewThreshold(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"rule": "precision_at_least=0.9"}}
    )

    rule: str = Field(max_length=100, description="KIND=VALUE, as in `tocsin threshold`.")
    stage: Stage = Stage.SUBMIT
    cluster: str | None = Field(None, max_length=100)


@router.get("/models", responses=reply({"models": [_MODEL]}))
def all_models(
    request: Request,
    service: TheService,
    asker: Asker,
    detector: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Every version of every detector's models, with the live figures of those that were in use lately."""
    del asker
    return json_reply(request, {"models": list_models(service.app, detector, service.learner.measured)})


@router.get("/models/{detector}/{version}", responses=reply(_MODEL))
def one_model(
    request: Request,
    service: TheService,
    asker: Asker,
    detector: Detector,
    version: Version,
    stage: OfStage = None,
    cluster: Cluster = None,
) -> Response:
    """The card of a version, with its live figures."""
    del asker
    wanted = _model(detector, version, stage, cluster)
    return json_reply(request, show_model(service.app, wanted, service.learner.measured))


@router.post("/models/{detector}/{version}/promote", responses=reply(_CHANGE))
def promote_model(
    request: Request, app: TheApp, asker: Asker, detector: Detector, version: Version, change: Change
) -> Response:
    """Use this version from now on."""
    require(asker, Role.OPERATOR, "promoting a model")
    wanted = _model(detector, version, change.stage, change.cluster)
    return json_reply(request, promote(app, wanted, _why(asker.user, change.why)))


@router.post("/models/{detector}/rollback", responses=reply(_CHANGE))
def roll_back(request: Request, app: TheApp, asker: Asker, detector: Detector, change: Rollback) -> Response:
    """Use the previous version again."""
    require(asker, Role.OPERATOR, "rolling a model back")
    wanted = _model(detector, "champion", change.stage, change.cluster)
    return json_reply(request, rollback(app, wanted, _why(asker.user, change.why), to_none=change.to_none))


@router.post("/models/{detector}/{version}/challenge", responses=reply(_CHALLENGER))
def challenge_model(
    request: Request, app: TheApp, asker: Asker, detector: Detector, version: Version, change: Place
) -> Response:
    """Score live jobs with this version, too, beside the one in use; nothing acts on its scores."""
    require(asker, Role.OPERATOR, "naming a challenger")
    return json_reply(request, challenge(app, _model(detector, version, change.stage, change.cluster)))


@router.delete("/models/{detector}/challenger", responses=reply({**_CHALLENGER, "challenger": None}))
def end_challenge(
    request: Request,
    app: TheApp,
    asker: Asker,
    detector: Detector,
    stage: OfStage = None,
    cluster: Cluster = None,
) -> Response:
    """End the challenge: only the version in use scores live jobs."""
    require(asker, Role.OPERATOR, "ending a challenge")
    return json_reply(request, challenge(app, _model(detector, "challenger", stage, cluster), end=True))


@router.get("/thresholds", responses=reply(_TABLE))
def threshold_table(
    request: Request, app: TheApp, asker: Asker, stage: Stage = Stage.SUBMIT, cluster: Cluster = None
) -> Response:
    """What each threshold of the failure model would have done; the chosen one is marked."""
    del asker
    return json_reply(request, thresholds(app, stage, cluster))


@router.put(
    "/thresholds/{detector}", responses=reply({"version": "4", "before": "3", "threshold": {"value": 0.7}})
)
def new_threshold(
    request: Request, app: TheApp, asker: Asker, detector: Detector, wanted: NewThreshold
) -> Response:
    """Set the threshold by a rule: a new version with it is in use from now on."""
    require(asker, Role.OPERATOR, "setting a threshold")
    if detector != "failure":
        raise NotFound(f'only the detector "failure" has a threshold that can be set, not "{detector}"')
    return json_reply(request, set_threshold(app, wanted.stage, wanted.cluster, wanted.rule))


def _model(detector: str, version: str, stage: Stage | None, cluster: str | None) -> ModelRequest:
    return ModelRequest(detector=detector, version=version, stage=stage, cluster=cluster)


def _why(user: str, why: str) -> str:
    return f"{why or 'by the API'} ({user})"
