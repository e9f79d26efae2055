"""`check` and `explain`: the verdict on a script before it is submitted, and on one job afterwards."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tocsin.app.app import App
from tocsin.app.clusters import UNNAMED, host_cluster, live_cluster, require_cluster
from tocsin.app.jobs import find_jobs
from tocsin.app.judge import needs, open_judge
from tocsin.core.detector import Need
from tocsin.core.errors import ClusterError, NotFound, SettingsError, StoreError
from tocsin.core.settings import ClusterSettings
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.store.home import user_name

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Known
    from tocsin.core.machine import Machine

__all__ = ["CheckRequest", "Explained", "check", "draw_risk", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    script: str
    """A path; - is standard input."""
    submit_options: tuple[str, ...] = ()
    user: str | None = None
    account: str | None = None
    cluster: str | None = None
    follow: bool = False
    """Read the files that the script calls, too."""


class Explained(NamedTuple):
    verdict: Verdict
    outcome: str | None
    """How the job has ended since."""


def check(app: App, request: CheckRequest) -> Verdict:
    """The verdict on a script as if it were submitted now; nothing in it is run, and no case is opened."""
    from tocsin.app.script_job import job_from_script, with_defaults, with_group
    from tocsin.scripts.scheduler import Scheduler
    from tocsin.scripts.script import parse
    from tocsin.scripts.text import read

    options = request.submit_options
    text = read(request.script)
    path = None if request.script == "-" else request.script
    user = request.user or user_name()
    _require_home(app)
    name, machine, unread = _machine(app, request.cluster, user)
    script = parse(text, scheduler=Scheduler.SLURM if machine else None)
    if options:
        script = script.with_options(options, only_options=True)
    job = job_from_script(
        script,
        cluster=name,
        user=user,
        at=int(time.time()),
        path=path,
        options=options,
        known={
            "account": request.account,
            "name": Path(path).name if path else "sbatch",
            "work_dir": _working_folder(),
        },
    )
    known, earlier = _known(app, job, Stage.SUBMIT, machine, {str(job["script"][0]): text})
    job = with_group(with_defaults(job, machine, earlier))
    judge = open_judge(app, known, cluster=name, stages=[Stage.SUBMIT], follow=request.follow)
    verdict = judge.explain(job, Stage.SUBMIT, known=known, at=int(time.time()))
    return replace(verdict, missing=verdict.missing | unread)


def explain(app: App, job: str, *, cluster: str | None = None, stage: Stage = Stage.SUBMIT) -> Explained:
    """The verdict on a job of the store from what was known at the stage, with all evidence."""
    from tocsin.store.scriptfiles import read_script

    jobs = find_jobs(app, job, cluster)
    if jobs.height > 1:
        raise NotFound(f"{jobs.height} jobs have the id {job}; name one by its key (tocsin job {job})")
    name, machine, unread = _machine(app, str(jobs["cluster"][0]))
    digest, texts = jobs["script"][0], {}
    if digest:
        with suppress(NotFound):  # pruned, or never stored
            texts[digest] = read_script(app.home.scripts, digest)
    known, _ = _known(app, jobs, stage, machine, texts)
    judge = open_judge(app, known, cluster=name, stages=[stage])
    verdict = judge.explain(jobs, stage, known=known, at=int(time.time()))
    return Explained(replace(verdict, missing=verdict.missing | unread), jobs["outcome"][0])


def draw_risk(verdict: Verdict, folder: Path) -> list[Path]:
    """Write the contributions to the risk as a waterfall chart."""
    from tocsin.charts.render import write_charts
    from tocsin.charts.waterfall import waterfall

    failure = verdict.failure
    if failure is None:
        reason = verdict.missing.get("failure", "no failure model has looked at it")
        raise NotFound(f"there is no risk of {verdict.job} to draw: {reason}")
    reasons = [(reason.text, reason.effect) for reason in failure.contributions]
    title = f"Risk of failure of {verdict.job} at {verdict.stage}"
    drawn = waterfall(title, failure.probability, reasons, threshold=failure.threshold)
    return write_charts(folder, {"risk": drawn})


def _working_folder() -> str | None:
    """Where sbatch would start the job by default."""
    with suppress(OSError):  # the folder was removed
        return os.getcwd()  # noqa: PTH109  # text is wanted
    return None


def _require_home(app: App) -> None:
    """An error that names the next step for a user who cannot use the home folder or the store."""
    try:
        app.home.prepare()
        app.store  # noqa: B018  # it is opened
    except (StoreError, SettingsError, OSError) as error:
        raise StoreError(
            f"no model and no history is available to you: {error}; ask an administrator to check the script, or set "
            "TOCSIN_HOME to a folder of your own"
        ) from None


def _machine(
    app: App, cluster: str | None, user: str | None = None
) -> tuple[str, "Machine | None", dict[str, str]]:
    """The name of the cluster, what it has, and why that is unknown; with a user, what that user may request."""
    if cluster == "demo":
        from tocsin.demo.cluster import DemoCluster

        return cluster, DemoCluster().machine(), {}
    unknown = cluster is not None and cluster not in app.settings.cluster
    if cluster is not None and unknown and host_cluster(ClusterSettings().timeout) != cluster:
        require_cluster(app, cluster)
        return cluster, None, {"machine": f'Slurm on this host does not answer for cluster "{cluster}"'}
    with live_cluster(app, cluster) as found:
        try:
            return found.name, found.machine(user=user), {}
        except ClusterError as error:
            only = _only_stored(app) if cluster is None and found.name == UNNAMED else None
            if only:
                return _machine(app, only, user)
            return found.name, None, {"machine": str(error)}


def _only_stored(app: App) -> str | None:
    """The store's only cluster, for a host without Slurm."""
    from tocsin.store.jobs import cluster_names

    names = cluster_names(app.store)
    return names[0] if len(names) == 1 else None


def _known(
    app: App, job: "pl.DataFrame", stage: Stage, machine: "Machine | None", texts: dict[str, str]
) -> "tuple[Known, pl.DataFrame]":
    """What is known of the cluster's jobs, and those jobs; only this user's, if no detector needs the others."""
    from tocsin.app import script_job
    from tocsin.history.recipe import KEYS, OWN_KEYS
    from tocsin.history.replay import READS, Replay
    from tocsin.store.jobs import Filter, load

    cluster, user = job["cluster"][0], job["user"][0]
    whole = Need.HISTORY in needs(app, stage, cluster)
    users = [] if whole or not user else [user]
    fields = list(dict.fromkeys([*READS, *script_job.READS]))
    jobs = load(app.store, Filter(clusters=[cluster], users=users, arrays=True), fields)
    return Replay(jobs, machine=machine, scripts=texts.get, keys=tuple(KEYS if whole else OWN_KEYS)), jobs
