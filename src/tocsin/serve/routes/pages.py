"""The start page: the latest warnings, open cases and clusters; it reloads itself."""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, Response
from fastapi.templating import Jinja2Templates

from tocsin.app.cases import page_of_cases
from tocsin.app.feed import list_verdicts
from tocsin.app.text import clock
from tocsin.core.units import parse_instant
from tocsin.core.verdict import ALARMS, CaseStatus
from tocsin.serve.dependencies import Asker, TheService
from tocsin.serve.visible import own_users, visible

__all__ = ["FOLDER", "TEMPLATES", "router"]

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent.parent
TEMPLATES = Jinja2Templates(FOLDER / "templates")
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
    shown = [case.to_json() for case in cases]
    zones = {job: app.zone(job.partition(":")[0]) for job in (each["job"] for each in [*found, *shown])}
    names = sorted({zone.key for zone in zones.values()}) or [app.zone().key]
    values: dict[str, Any] = {
        "demo": service.request.demo,
        "asker": asker,
        "warnings": [
            {**each, "text": _worst(each), "clock": _clock(each["at"], zones[each["job"]], names)}
            for each in found
        ],
        "cases": [{**each, "clock": _clock(each["opened"], zones[each["job"]], names)} for each in shown],
        "zones": names,
        "states": service.states,
        "reasons": list(service.reasons()),
    }
    return TEMPLATES.TemplateResponse(request, "start.html", values)


def _worst(verdict: dict[str, Any]) -> str:
    """What the verdict's level is due to."""
    worst = [each["text"] for each in verdict["findings"] if each["level"] == verdict["level"]]
    return "; ".join(worst) or "see its verdict"


def _clock(instant: str, zone: ZoneInfo, zones: Sequence[str]) -> str:
    """As sacct prints it; with its time zone if the page shows times of several."""
    text = clock(parse_instant(instant, UTC), zone)
    return text if len(zones) == 1 else f"{text} {zone.key}"
