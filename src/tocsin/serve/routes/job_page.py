"""The page of one job: what it requested, how it went, and each verdict in words."""

from dataclasses import replace
from datetime import tzinfo
from typing import Any

from fastapi import APIRouter, Request, Response

from tocsin.app.actions import actions_on
from tocsin.app.app import App
from tocsin.app.causes import cause_known
from tocsin.app.jobs import JobWithVerdicts
from tocsin.app.text import clock
from tocsin.app.verdict_text import action_lines, cause_lines, explain_headline, stage_time, verdict_screen
from tocsin.core.errors import NotFound
from tocsin.core.printable import printable
from tocsin.core.units import format_duration, format_memory
from tocsin.core.verdict import Verdict
from tocsin.serve.dependencies import Asker, Cluster, JobName, TheService
from tocsin.serve.principal import Principal
from tocsin.serve.routes.jobs import own_jobs
from tocsin.serve.routes.pages import TEMPLATES
from tocsin.serve.visible import visible, visible_actions

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_MOST = 200


@router.get("/jobs/{job}")
def job_page(
    request: Request, service: TheService, asker: Asker, job: JobName, cluster: Cluster = None
) -> Response:
    """One job, or a list of links if the name is that of several."""
    try:
        found = own_jobs(service.app, asker, job, cluster)
    except NotFound as error:
        values: dict[str, Any] = {"name": job, "reason": str(error)}
        return TEMPLATES.TemplateResponse(request, "job.html", values, status_code=404)
    zone = service.app.zone(found[0].key.cluster)
    values = {"name": job, "demo": service.request.demo, "zone": zone.key, "number": len(found)}
    if len(found) > 1:
        values["jobs"] = [
            {"key": str(each.key), "submitted": clock(each.row["submit"], zone), "state": each.row["state"]}
            for each in found[:_MOST]
        ]
    else:
        values |= {
            "name": str(found[0].key),
            "facts": _facts(found[0], zone),
            "failed": _failed(service.app, found[0]),
            "done": _done(service.app, found[0], asker, zone),
            "verdicts": [_verdict(each, asker, zone) for each in found[0].verdicts],
        }
    return TEMPLATES.TemplateResponse(request, "job.html", values)


def _facts(job: JobWithVerdicts, zone: tzinfo) -> dict[str, Any]:
    """What people ask for first; the rest is in the job's JSON."""
    row = job.row
    facts = {
        "Name": row["name"],
        "User": row["user"],
        "Account": row["account"],
        "Partition": row["partition"],
        "State": row["state"],
        "Requested CPUs": row["req_cpus"],
        "Requested memory": format_memory(row["req_memory"]) + " per node" if row["req_memory"] else None,
        "Time limit": format_duration(row["time_limit"]),
        "Submitted": clock(row["submit"], zone),
        "Started": clock(row["start"], zone),
        "Ended": clock(row["end"], zone),
        "Nodes": row["node_list"],
    }
    return {name: printable(str(value)) for name, value in facts.items() if value not in (None, "")}


def _failed(app: App, job: JobWithVerdicts) -> str | None:
    """Why a failed job failed, or where to look."""
    failed, cause = cause_known(app, job.row, str(job.key))
    if cause:
        return "\n".join(map(printable, cause_lines(cause)))
    return "  cause of the failure: not looked for yet" if failed else None


def _done(app: App, job: JobWithVerdicts, asker: Principal, zone: tzinfo) -> str:
    """What keeps the job from running, until when and why: squeue shows its owner no more than JobHeldAdmin."""
    documents = [action.to_json() for action in actions_on(app, [str(job.key)])]
    return "\n".join(line for line in action_lines(visible_actions(documents, asker), zone) if line)


def _verdict(verdict: Verdict, asker: Principal, zone: tzinfo) -> dict[str, Any]:
    """Its lines as `tocsin explain` prints them, as far as this person may see it; the cause is shown once, above all."""
    shown = replace(Verdict.from_json(visible(verdict.to_json(), asker)), cause=None)
    headline, *lines = map(printable, verdict_screen(shown, explain_headline(shown, None)))
    return {
        "when": stage_time(verdict.stage),
        "level": str(verdict.level),
        "at": clock(verdict.at, zone),
        "headline": headline,
        "text": "\n".join(lines[1:]),
    }
