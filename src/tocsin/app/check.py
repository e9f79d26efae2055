"""`check` and `explain`: the verdict on a script before it is submitted, and on one job afterwards."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.causes import cause_of_ended, past_causes_advice
from tocsin.app.clusters import UNNAMED, host_cluster, live_cluster, require_cluster
from tocsin.app.jobs import find_jobs
from tocsin.app.judge import needs, open_judge
from tocsin.core.detector import Need
from tocsin.core.errors import ClusterError, NotFound, SettingsError, StoreError
from tocsin.core.settings import ClusterSettings
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, Verdict
from tocsin.store.home import user_name

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Known
    from tocsin.core.machine import Machine
    from tocsin.judge.judge import Judge

__all__ = [
    "CheckRequest",
    "Evidence",
    "Explained",
    "ScriptQuestion",
    "check",
    "check_stored",
    "draw_risk",
    "explain",
    "judged",
    "question",
    "read_machine",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    script: str
    """A path; - is standard input."""
    submit_options: tuple[str, ...] = ()
    user: str | None = None
    account: str | None = None
    cluster: str | None = None
    follow: bool = False
    """Also read the files that the script calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptQuestion:
    """A script as it would be submitted now."""

    text: str
    user: str
    path: str | None = None
    options: tuple[str, ...] = ()
    account: str | None = None
    work_dir: str | None = None
    explain: bool = True
    """Include all evidence, not only alarms."""


class Evidence(NamedTuple):
    """The data that a question about a script is answered from."""

    cluster: str
    at: int
    machine: "Machine | None"
    missing: dict[str, str]
    """What could not be read, and why."""
    known: "Callable[[dict[str, str]], tuple[Known, Mapping[str, Any]]]"
    """With the texts of scripts: what is known, and what the user's latest jobs have in common."""
    judge: "Callable[[Known], Judge]"
    past_causes: "Callable[[Mapping[str, Any]], list[Advice]]"
    """Advice based on what ended earlier runs of the job's program."""


class Explained(NamedTuple):
    verdict: Verdict
    outcome: str | None
    """How the job has ended since."""
    actions: Sequence[dict[str, Any]] = ()
    """What was done to it, as JSON documents."""


def check(app: App, request: CheckRequest) -> Verdict:
    """The verdict on a script as if it were submitted now; nothing in it is run, and no case is opened."""
    return check_stored(app, question(request), cluster=request.cluster, follow=request.follow)


def question(request: CheckRequest) -> ScriptQuestion:
    """The question, with the script's text and what this process knows of its user."""
    from tocsin.scripts.text import read

    return ScriptQuestion(
        text=read(request.script),
        user=request.user or user_name(),
        path=None if request.script == "-" else request.script,
        options=(*_environment(request.user), *request.submit_options),
        account=request.account,
        work_dir=_working_folder(),
    )


def _environment(user: str | None) -> tuple[str, ...]:
    """The variables of this process that sbatch would read; those of another user are unknown."""
    from tocsin.scripts.environment import assignments

    return assignments(os.environ) if user in (None, user_name()) else ()


def check_stored(
    app: App, asked: ScriptQuestion, *, cluster: str | None = None, follow: bool = False
) -> Verdict:
    """The verdict from the jobs in the store and the models in use, loaded for this question."""
    _require_home(app)
    name, machine, missing = read_machine(app, cluster, asked.user)
    return judged(
        asked,
        Evidence(
            name,
            int(time.time()),
            machine,
            missing,
            known=lambda texts: _known_and_usual(app, name, asked.user, machine, texts),
            judge=lambda known: open_judge(app, known, cluster=name, stages=[Stage.SUBMIT], follow=follow),
            past_causes=lambda job: past_causes_advice(app, job, yours=asked.user == user_name()),
        ),
    )


def judged(asked: ScriptQuestion, evidence: Evidence) -> Verdict:
    """The verdict on a script from this evidence."""
    from tocsin.app.script_job import job_from_script, with_defaults, with_group
    from tocsin.core.frames import from_jobs
    from tocsin.scripts.scheduler import Scheduler
    from tocsin.scripts.script import parse

    machine = evidence.machine
    script = parse(asked.text, scheduler=Scheduler.SLURM if machine else None)
    if asked.options:
        script = script.with_options(asked.options, only_options=True)
    job = job_from_script(
        script,
        cluster=evidence.cluster,
        user=asked.user,
        at=evidence.at,
        path=asked.path,
        options=asked.options,
        known={
            "account": asked.account,
            "name": Path(asked.path).name if asked.path else "sbatch",
            "work_dir": asked.work_dir,
        },
    )
    known, usual = evidence.known({str(job.script): asked.text})
    frame = from_jobs([with_group(with_defaults(job, machine, usual))])
    judge = evidence.judge(known)
    give = judge.explain if asked.explain else judge.preview
    verdict = give(frame, Stage.SUBMIT, known=known, at=evidence.at)
    past = evidence.past_causes(frame.row(0, named=True)) if asked.explain else []
    return replace(
        verdict, missing=verdict.missing | evidence.missing, advice=_with_past(verdict.advice, past)
    )


def explain(app: App, job: str, *, cluster: str | None = None, stage: Stage = Stage.SUBMIT) -> Explained:
    """The verdict on a job of the store from what was known at the stage, with all evidence.

    The cause of a failure is read from the job's output now, whatever the stage.
    """
    from tocsin.store.scriptfiles import read_script

    jobs = find_jobs(app, job, cluster)
    if jobs.height > 1:
        raise NotFound(f"{jobs.height} jobs have the id {job}; name a key that `tocsin job {job}` lists")
    name, machine, unread = read_machine(app, str(jobs["cluster"][0]))
    digest, texts = jobs["script"][0], {}
    if digest:
        with suppress(NotFound):  # pruned, or never stored
            texts[digest] = read_script(app.home.scripts, digest)
    known, _ = _known(app, name, jobs["user"][0], stage, machine, texts)
    judge = open_judge(app, known, cluster=name, stages=[stage])
    verdict = judge.explain(jobs, stage, known=known, at=int(time.time()))
    row = jobs.row(0, named=True)
    found = cause_of_ended(app, row, verdict.job, texts.get(digest) or _script_of_array(app, row))
    if found.missing:
        unread = {**unread, "cause": found.missing}
    past = (
        past_causes_advice(app, row, yours=row["user"] == user_name(), skip=verdict.job)
        if stage is Stage.SUBMIT
        else []
    )
    verdict = replace(
        verdict,
        cause=found.cause,
        missing=verdict.missing | unread,
        advice=_with_past(verdict.advice, past),
    )
    return Explained(verdict, row["outcome"])


def _with_past(advice: Sequence[Advice], past: Sequence[Advice]) -> list[Advice]:
    """Add advice from earlier runs, unless other advice concerns the same part of the request."""
    changed = {one.field for one in advice if one.field}
    return [*advice, *(one for one in past if one.field not in changed)]


def _script_of_array(app: App, job: Mapping[str, Any]) -> str | None:
    """The script of the array that a task belongs to, since only that one is stored."""
    from tocsin.store import watching
    from tocsin.store.scriptfiles import read_script

    if job["task"] is None:
        return None
    arrays = watching.jobs_named(app.store, watching.arrays(app.store, job["cluster"], [job["job_id"]]))
    for submit, digest in arrays.sort("submit", descending=True).select("submit", "script").iter_rows():
        if submit <= job["submit"] and digest:
            with suppress(NotFound):
                return read_script(app.home.scripts, digest)
    return None


def draw_risk(verdict: Verdict, folder: Path) -> list[Path]:
    """Write the contributions to the risk as a waterfall chart."""
    from tocsin.charts.render import write_charts
    from tocsin.charts.waterfall import waterfall

    failure = verdict.failure
    if failure is None:
        reason = verdict.missing.get("failure", "no failure model has scored it")
        raise NotFound(f"cannot draw the risk of {verdict.job}: {reason}")
    reasons = [(reason.text, reason.effect) for reason in failure.contributions]
    title = f"Risk of failure of {verdict.job} at {verdict.stage}"
    drawn = waterfall(title, failure.probability, reasons, threshold=failure.threshold)
    return write_charts(folder, {"risk": drawn})


def _working_folder() -> str | None:
    """The folder in which sbatch would start the job by default."""
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
            f"no model and no history is available to you: {error}, or ask an administrator to check the script"
        ) from None


def read_machine(
    app: App, cluster: str | None, user: str | None = None
) -> tuple[str, "Machine | None", dict[str, str]]:
    """The cluster's name, its machine, and why that is unknown; with a user, what that user may request."""
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
                return read_machine(app, only, user)
            return found.name, None, {"machine": str(error)}


def _only_stored(app: App) -> str | None:
    """The store's only cluster, for a host without Slurm."""
    from tocsin.store.jobs import cluster_names

    names = cluster_names(app.store)
    return names[0] if len(names) == 1 else None


def _known_and_usual(
    app: App, cluster: str, user: str, machine: "Machine | None", texts: dict[str, str]
) -> "tuple[Known, Mapping[str, Any]]":
    from tocsin.app.script_job import usual_values

    known, earlier = _known(app, cluster, user, Stage.SUBMIT, machine, texts)
    return known, usual_values(earlier, user)


def _known(
    app: App,
    cluster: str,
    user: str | None,
    stage: Stage,
    machine: "Machine | None",
    texts: dict[str, str],
) -> "tuple[Known, pl.DataFrame]":
    """What is known of the cluster's jobs, and those jobs; only this user's if no detector needs the others."""
    import polars as pl

    from tocsin.app import script_job
    from tocsin.history.recipe import KEYS, OWN_KEYS
    from tocsin.history.replay import READS, Replay
    from tocsin.store.jobs import Filter, load

    whole = Need.HISTORY in needs(app, stage, cluster)
    users = [] if whole or not user else [user]
    fields = list(dict.fromkeys([*READS, *script_job.READS, "array"]))
    jobs = load(app.store, Filter(clusters=[cluster], users=users, arrays=True), fields)
    # As in the service: tasks of an array count, the array as submitted does not.
    past = jobs.filter(pl.col("array").is_null() | pl.col("outcome").is_not_null())
    return Replay(past, machine=machine, scripts=texts.get, keys=tuple(KEYS if whole else OWN_KEYS)), jobs
