"""The start page: the latest warnings, open cases and clusters; it reloads itself."""

from datetime import UTC
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates

from tocsin.app.cases import page_of_cases
from tocsin.app.feed import list_verdicts
from tocsin.app.text import clock
from tocsin.core.units import parse_instant
from tocsin.core.verdict import ALARMS, CaseStatus
from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.visible import own_users, visible

__all__ = ["FOLDER", "router"]

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent.parent
_TEMPLATES = Jinja2Templates(FOLDER / "templates")
_SHOWN = 30


@router.get("/")
def first(request: Request, service: TheService, asker: Asker) -> Response:
    app = service.app
    levels = [str(level) for level in ALARMS]
    users = own_users(asker, ())
    found = [
        visible(document, asker)
        for _, document in list_verdicts(app, levels=levels, users=users or (), size=_SHOWN)
    ]
    cases = page_of_cases(app, CaseStatus.OPEN, before=None, size=_SHOWN) if asker.is_operator else []
    values: dict[str, Any] = {
        "demo": service.request.demo,
        "asker": asker,
        "warnings": [_warning(document, app.zone(document["job"].partition(":")[0])) for document in found],
        "cases": [case.to_json() for case in cases],
        "states": service.states,
        "reasons": list(service.reasons()),
    }
    return _TEMPLATES.TemplateResponse(request, "start.html", values)


def _warning(document: dict[str, Any], zone: Any) -> dict[str, Any]:
    worst = [each["text"] for each in document["findings"] if each["level"] == document["level"]]
    at = parse_instant(document["at"], UTC)
    return {**document, "text": "; ".join(worst) or "see its verdict", "clock": clock(at, zone)}
