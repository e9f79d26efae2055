"""What users may do to their own jobs in the store: cancel them, read their scripts, link them to later submissions."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.actions import open_executor
from tocsin.app.app import App
from tocsin.app.clusters import live_cluster
from tocsin.app.jobs import find_jobs
from tocsin.core.actions import PEOPLE, ActionKind, ActionStatus, PlannedAction
from tocsin.core.errors import InputError, NotFound
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.stages import Stage
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.store.actions import Action

__all__ = [
    "Resubmission",
    "cancel_job",
    "job_script",
    "last_owned",
    "link_own_jobs",
    "link_resubmission",
    "resubmissions",
]

_RESUBMITTED = "resubmitted"


@dataclass(frozen=True, slots=True)
class Resubmission:
    """A job that was submitted again, and how that changed its risk of failure."""

    old: str
    new: str
    at: int
    who: str
    risk_before: float | None
    risk_after: float | None

    def to_json(self) -> dict[str, Any]:
        from tocsin.core.units import format_instant

        values = {name: getattr(self, name) for name in ("old", "new", "who", "risk_before", "risk_after")}
        return {**values, "at": format_instant(self.at)}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Resubmission":
        from datetime import UTC

        from tocsin.core.units import parse_instant

        return cls(**{**document, "at": parse_instant(document["at"], UTC)})


def cancel_job(
    app: App, job: str, *, who: str | None = None, operator: bool = False, cluster: str | None = None
) -> "Action":
    """Cancel a job at once for its owner or an operator; it is an action with an audit row like any other."""
    from tocsin.store import actions

    who, now = who or user_name(), int(time.time())
    key, owner = _owned(app, job, who, operator, cluster)
    planned = PlannedAction(
        job=str(key),
        kind=ActionKind.CANCEL,
        status=ActionStatus.PLANNED,
        at=now,
        reason=f"{who} asked for it",
        detector=PEOPLE,
        finding="request",
        stage=Stage.SUBMIT,
        user=owner,
    )
    with live_cluster(app, key.cluster) as live:
        with app.store.writing() as connection:
            if not actions.plan(connection, planned, who=who):
                actions.take_over(connection, planned)
        executor = open_executor(app, live, act=True)
        [action] = [each for each in actions.of_job(app.store, key) if each.kind is ActionKind.CANCEL]
        # An action that policy only recorded, or that failed before, does not block a person.
        if action.status is not ActionStatus.DONE:
            executor.carry_out(action, now, who=who)
    return actions.find(app.store, action.id)


def job_script(app: App, job: str, *, who: str, operator: bool = False, cluster: str | None = None) -> str:
    """The script that a job of one's own was submitted with."""
    from tocsin.store.scriptfiles import read_script

    key, _ = _owned(app, job, who, operator, cluster)
    digest = find_jobs(app, str(key), None)["script"][0]
    if not digest:
        raise NotFound(f"the script of {key} is not stored; name it: tocsin resubmit {key} SCRIPT")
    return read_script(app.home.scripts, digest)


def link_own_jobs(app: App, old: str, new: str, *, who: str, operator: bool = False) -> Resubmission:
    """Link a job to its later submission; the user must own both or be an operator."""
    first, owner = _owned(app, old, who, operator, None)
    second, same = _owned(app, new, who, operator, first.cluster)
    if owner != same:
        raise InputError(f"{second} belongs to another user than {first}; only jobs of one user are linked")
    if second.submit < first.submit:
        raise InputError(f"{second} was submitted before {first}; name the old job first")
    return link_resubmission(app, str(first), str(second), who=who)


def link_resubmission(
    app: App, old: str, new: str, *, who: str | None = None, risk_after: float | None = None
) -> Resubmission:
    """Record that a job was submitted again as another. `risk_after`: as predicted before the new job had a verdict."""
    from tocsin.store import audit

    who, now = who or user_name(), int(time.time())
    key = parse_key(old)
    if parse_key(new) == key:
        raise InputError(f"{new} cannot be a resubmission of itself; name the new job")
    detail = {"new": str(parse_key(new)), "risk": risk_after}
    audit.append(app.store, audit.Entry(at=now, who=who, what=_RESUBMITTED, job=key, detail=detail))
    return resubmissions(app, old)[-1]


def resubmissions(app: App, *jobs: str) -> list[Resubmission]:
    """The later submissions of the jobs with these keys, with the risk at submission of both."""
    from tocsin.store import audit, verdicts

    entries = audit.of_jobs(app.store, list(jobs), _RESUBMITTED)
    named = {name for entry in entries for name in (str(entry.job), entry.detail["new"])}
    found = verdicts.last_at_stage(app.store, sorted(named), Stage.SUBMIT)
    risks = {job: each.failure.probability for job, each in found.items() if each.failure}
    return [
        Resubmission(
            str(entry.job),
            entry.detail["new"],
            entry.at,
            entry.who,
            risks.get(str(entry.job)),
            risks.get(entry.detail["new"], entry.detail["risk"]),
        )
        for entry in entries
    ]


def _owned(app: App, job: str, who: str, operator: bool, cluster: str | None) -> tuple[JobKey, str | None]:
    """The last job with this id, if the user owns it or is an operator."""
    rows = find_jobs(app, job, cluster).to_dicts()
    return last_owned(rows if operator else [row for row in rows if row["user"] == who], job, who)


def last_owned(rows: Sequence[dict[str, Any]], job: str, who: str) -> tuple[JobKey, str | None]:
    """Key and owner of the last of these jobs; an error if there is none."""
    if not rows:
        # The same message as for an unknown job, so as not to reveal who owns which job.
        raise NotFound(f"no job {job} of user {who}; list your jobs with: tocsin jobs -u {who}")
    last = max(rows, key=lambda row: row["submit"])
    return JobKey(last["cluster"], last["job_id"], last["task"], last["submit"]), last["user"]
