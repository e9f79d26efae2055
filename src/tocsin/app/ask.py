"""Questions that a reachable service answers, else this process from its own data; the answers are the same."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from time import time as now
from typing import Any, NamedTuple
from urllib.parse import quote

from tocsin.app import check as checking
from tocsin.app import jobs as stored
from tocsin.app.actions import actions_on
from tocsin.app.app import App
from tocsin.app.causes import open_catalogue
from tocsin.app.check import CheckRequest, Explained
from tocsin.app.client import Client, reachable
from tocsin.app.jobs import JobsRequest, JobWithVerdicts
from tocsin.app.service_address import is_own_data
from tocsin.app.times import parse_time
from tocsin.core.errors import NotFound, TocsinError
from tocsin.core.ids import JobKey
from tocsin.core.job_json import from_json
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import Verdict

__all__ = ["Rows", "check", "explain", "list_jobs", "show_job"]


_ONLY_OWN = "the service does not answer, so only your own data in {} was read"


class Rows(NamedTuple):
    """Jobs as rows of their fields."""

    number: int
    rows: Iterable[dict[str, Any]]


def check(app: App, request: CheckRequest, *, local: bool = False) -> Verdict:
    """The verdict on a script as if it were submitted now. Called files can only be read by this process."""
    client = None if local or request.follow else reachable(app)
    if client is None:
        return checking.check(app, request)
    asked = checking.question(request)
    document = {
        # JSON carries no bytes that are not UTF-8, which a script may have in a comment or a name
        "script": asked.text.encode("utf-8", "replace").decode(),
        "options": list(asked.options),
        "path": asked.path,
        "work_dir": asked.work_dir,
        "user": request.user,
        "account": asked.account,
        "cluster": request.cluster,
        "explain": True,
    }
    return Verdict.from_json(client.post("/check", document))


def explain(app: App, job: str, *, cluster: str | None, stage: Stage, local: bool = False) -> Explained:
    """The verdict on a job from what was known at the stage, with all evidence."""
    client = _client(app, local)
    if client is None:
        with _naming_own_data(app, local):
            explained = checking.explain(app, job, cluster=cluster, stage=stage)
        done = actions_on(app, [explained.verdict.job])
        return explained._replace(actions=[action.to_json() for action in done])
    found = client.get(f"/jobs/{quote(job, safe='')}/explanation", cluster=cluster, stage=str(stage))
    verdict = Verdict.from_json(found["verdict"])
    if "cause" in verdict.missing:
        verdict = _with_cause(app, client, verdict)
    done = client.get(f"/jobs/{quote(verdict.job, safe='')}/actions")["actions"]
    return Explained(verdict, found["outcome"], done)


def _with_cause(app: App, client: Client, verdict: Verdict) -> Verdict:
    """With the cause from output that this process may read and the service may not: home folders are usually closed.

    As everywhere, only what the job's owner may read is read.
    """
    from tocsin.causes.job_cause import cause_of_job

    row = from_json(client.get(f"/jobs/{quote(verdict.job, safe='')}")["jobs"][0])
    try:
        script = client.get(f"/jobs/{quote(verdict.job, safe='')}/script")["script"]
    except TocsinError:  # not known, or not for us
        script = None
    found = cause_of_job(row, script, open_catalogue(app))
    missing = {part: why for part, why in verdict.missing.items() if part != "cause"}
    if found.missing:
        missing["cause"] = found.missing
    return replace(verdict, cause=found.cause, missing=missing)


def list_jobs(
    app: App, request: JobsRequest, fields: Sequence[str] | None = None, *, local: bool = False
) -> Rows:
    """The matching jobs, oldest first; with `fields`, only these fields are needed."""
    client = _client(app, local)
    if client is None:
        frame = stored.list_jobs(app, request, fields)
        if frame.is_empty() and not local and is_own_data(app):
            app.notify(_ONLY_OWN.format(app.home.root))
        return Rows(frame.height, frame.iter_rows(named=True))
    query = {
        "id": request.ids,
        "user": ",".join(request.users),
        "account": ",".join(request.accounts),
        "cluster": ",".join(request.clusters),
        "partition": ",".join(request.partitions),
        "state": ",".join(request.states),
        "name": ",".join(request.names),
        "domain": ",".join(request.domains),
        "start": _instant(app, request, request.starttime),
        "end": _instant(app, request, request.endtime),
    }
    found = client.pages("/jobs", "jobs", request.newest, query)
    rows = [from_json(document) for document in found][::-1]
    return Rows(len(rows), rows)


def _instant(app: App, request: JobsRequest, time: str | None) -> str | None:
    """In UTC: the service may be in another time zone than this user."""
    return format_instant(parse_time(time, app.zone(request.cluster), now())) if time else None


def show_job(app: App, which: str, cluster: str | None, *, local: bool = False) -> list[JobWithVerdicts]:
    """Every submission and task that an id or a key names, each with its verdicts."""
    client = _client(app, local)
    if client is None:
        with _naming_own_data(app, local):
            return stored.show_job(app, which, cluster)
    found = []
    for document in client.get(f"/jobs/{quote(which, safe='')}", cluster=cluster)["jobs"]:
        row = from_json(document)
        key = JobKey(row["cluster"], row["job_id"], row["task"], row["submit"])
        found.append(JobWithVerdicts(key, row, [Verdict.from_json(each) for each in document["verdicts"]]))
    return found


@contextmanager
def _naming_own_data(app: App, local: bool) -> Iterator[None]:
    """A job that is not found may be known to the service, which does not answer."""
    try:
        yield
    except NotFound as error:
        if local or not is_own_data(app):
            raise
        raise NotFound(f"{error} ({_ONLY_OWN.format(app.home.root)})") from None


def _client(app: App, local: bool) -> Client | None:
    return None if local else reachable(app)
