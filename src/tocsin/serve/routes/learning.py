"""Learning: when models are retrained, with what result, and how they perform on live jobs."""

from typing import Any

from fastapi import APIRouter, Request, Response

from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.documents import reply
from tocsin.serve.principal import Role
from tocsin.serve.replies import json_reply
from tocsin.serve.visible import require

__all__ = ["LIVE", "router"]

router = APIRouter(tags=["models"])

_PLACE = {"detector": "failure", "stage": "submit", "cluster": "lab"}
LIVE: dict[str, Any] = {
    **_PLACE,
    "version": "3",
    "role": "champion",
    "target": "failed",
    "since": "2026-10-20T02:00:41Z",
    "until": "2026-11-17T08:12:09Z",
    "jobs": 18204,
    "failed": 3127,
    "alarms": 1410,
    "hits": 1184,
    "left_out": {"waiting": 210, "other_outcome": 633, "intervened": 0, "not_control": 0},
    "control": False,
    "precision": {"value": 0.84, "low": 0.79, "high": 0.88},
    "recall": {"value": 0.379, "low": 0.31, "high": 0.44},
    "auc": {"value": 0.887, "low": 0.871, "high": 0.901},
    "missing": {},
    "promised": 0.8,
    "held": True,
}
_RESULT = {
    "figure": "average_precision",
    "held_back": "18,204 live jobs",
    "rows": 18204,
    "champion": 0.671,
    "challenger": 0.668,
    "gain": -0.003,
    "low": -0.021,
    "high": 0.014,
    "better": False,
    "not_worse": False,
    "promotes": False,
}
_DRIFT = {"name": "time_limit", "then": None, "now": None, "stability": 0.14, "strength": "moderate"}
_RUN = {
    "id": 41,
    "started": "2026-11-17T01:00:04Z",
    "ended": "2026-11-17T01:06:40Z",
    "who": "service",
    "state": "done",
    "outcomes": [],
    "error": "",
}
_LEARNING = {
    "retraining": {
        "in_service": True,
        "failure_days": 7,
        "holdback_days": 3,
        "running": False,
        "next": "2026-11-18T01:00:00Z",
        "runs": [_RUN],
    },
    "measured": "2026-11-17T08:15:00Z",
    "live": [LIVE],
    "challengers": [{**_PLACE, "champion": "3", "challenger": "4", "result": _RESULT, "missing": None}],
    "drift": [{**_PLACE, "at": "2026-11-17T01:00:04Z", "champion": "3", "drift": [_DRIFT]}],
    "missing": {},
}


@router.get("/learning", responses=reply(_LEARNING))
def state_of_learning(request: Request, service: TheService, asker: Asker) -> Response:
    """Runs and when the next is due, live precision and recall by stage, challengers beside champions, and drift."""
    require(asker, Role.OPERATOR, "the state of learning")
    return json_reply(request, service.learner.state())
