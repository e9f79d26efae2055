"""`resubmit`: submit a job of one's own again, as the user who calls it, linked to the old job."""

import os
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from tocsin.app import ask
from tocsin.app.app import App
from tocsin.app.check import CheckRequest
from tocsin.app.client import Client, reachable
from tocsin.app.clusters import cluster_named
from tocsin.app.own_jobs import Resubmission, job_script, last_owned, link_resubmission
from tocsin.core.errors import ClusterError, NotFound, TocsinError
from tocsin.core.ids import JobKey
from tocsin.store.home import user_name

__all__ = ["ResubmitRequest", "resubmit"]

_PATIENCE = 35.0
"""Seconds until a service should have seen a new job: it reads a slow queue every 30 s."""
_AGAIN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ResubmitRequest:
    job: str
    script: str | None = None
    """The changed script; None: unchanged."""
    submit_options: tuple[str, ...] = ()
    cluster: str | None = None


def resubmit(app: App, request: ResubmitRequest, *, local: bool = False) -> Resubmission:
    """Submit one's own job again and link it to the old one. A reachable service knows the old job and stores the link."""
    from tocsin.sources.slurm_submit import follow, submit

    client = None if local else reachable(app)
    who = user_name()
    found = ask.show_job(app, request.job, request.cluster, local=client is None)
    old, _ = last_owned([each.row for each in found if each.row["user"] == who], request.job, who)
    conf = cluster_named(app, old.cluster)[1].slurm_conf
    with tempfile.TemporaryDirectory() as folder:
        path = Path(request.script) if request.script else Path(folder) / "job.sh"
        if not request.script:
            _write(path, _script(app, client, old, who))
        check = CheckRequest(script=str(path), submit_options=request.submit_options, cluster=old.cluster)
        risk = ask.check(app, check, local=client is None).failure
        number = submit(path, (), request.submit_options, slurm_conf=conf)
    job = follow([number], slurm_conf=conf).get(number)
    if job is None or job.submit is None:
        raise ClusterError(f"sbatch submitted job {number}, but squeue does not show it; it is not linked")
    new = JobKey(old.cluster, int(number), None, job.submit)
    after = risk.probability if risk else None
    if client is None:
        return link_resubmission(app, str(old), str(new), who=who, risk_after=after)
    return _link(app, client, Resubmission(str(old), str(new), int(time.time()), who, None, after))


def _script(app: App, client: Client | None, job: JobKey, who: str) -> str:
    if client is None:
        return job_script(app, str(job), who=who)
    return str(client.get(f"/jobs/{quote(str(job), safe='')}/script")["script"])


def _write(path: Path, text: str) -> None:
    """Exactly as submitted: what is not UTF-8 in a script was kept as surrogates."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))


def _link(app: App, client: Client, done: Resubmission) -> Resubmission:
    """Ask the service to store the link, once it has seen the new job. The job runs, whatever becomes of the link."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            reply = client.post(
                f"/jobs/{quote(done.old, safe='')}/actions", {"action": "resubmitted", "new": done.new}
            )
        except NotFound as error:
            if time.monotonic() < until:
                time.sleep(_AGAIN)
                continue
            problem: TocsinError = error
        except TocsinError as error:
            problem = error
        else:
            linked = Resubmission.from_json(reply["resubmissions"][0])
            return replace(
                linked, risk_after=done.risk_after if linked.risk_after is None else linked.risk_after
            )
        app.notify(f"the new job is not linked to the old one: {problem}")
        return done
