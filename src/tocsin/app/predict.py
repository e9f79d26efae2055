"""`predict`: how likely jobs are to fail, and which are most worth asking their users about."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.clusters import live_cluster
from tocsin.app.jobs import find_jobs, find_many
from tocsin.app.logs import one_cluster
from tocsin.app.threshold import failure_model
from tocsin.core.errors import ClusterError, InputError, NotFound
from tocsin.core.ids import parse_slurm_id
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Known, Parts
    from tocsin.failure.fitted import FittedFailure

__all__ = ["PredictRequest", "predict"]

_MOST_ASKED = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """Either these jobs (ids or keys), or the `ask` jobs that are most worth asking about."""

    jobs: tuple[str, ...] = ()
    ask: int | None = None
    cluster: str | None = None
    stage: Stage = Stage.SUBMIT


def predict(app: App, request: PredictRequest) -> list[dict[str, Any]]:
    """One row for each job, from what was known at the stage."""
    import polars as pl

    from tocsin.core.frames import key_text
    from tocsin.history.replay import Replay
    from tocsin.judge.answers import as_known
    from tocsin.store.jobs import Filter, load

    stage = request.stage
    if request.ask is None:
        stored, others = find_many(app, request.jobs, request.cluster)
        jobs = pl.concat([stored, *(_find(app, job, request.cluster) for job in others)])
    else:
        jobs = _open_jobs(app, request.cluster, stage)
    cluster = one_cluster(jobs)
    model, version = failure_model(app, stage, cluster)
    known = Replay(load(app.store, Filter(clusters=[cluster])))
    if request.ask is not None:
        jobs = _most_informative(model, jobs, known, stage, request.ask)
    parts = model.assess(as_known(jobs, stage), known, stage=stage)
    rows = jobs.select(key_text(), "user", "name", "outcome").to_dicts()
    return [
        {**_row(job, part), "stage": str(stage), "model": version}
        for job, part in zip(rows, parts, strict=True)
    ]


def _row(job: dict[str, Any], parts: "Parts") -> dict[str, Any]:
    failure = parts.failure
    return {
        "job": job["job"],
        "user": job["user"],
        "name": job["name"],
        "probability": failure.probability if failure else None,
        "will_fail": failure.will_fail if failure else None,
        "causes": dict(failure.causes) if failure else {},
        "outcome": job["outcome"],
        "missing": dict(parts.missing),
    }


def _open_jobs(app: App, cluster: str | None, stage: Stage) -> "pl.DataFrame":
    """Jobs that reached the stage and have not ended; if there are none, the latest jobs."""
    import polars as pl

    from tocsin.core.frames import reached_at
    from tocsin.store.jobs import Filter, load

    wanted = Filter(clusters=[cluster] if cluster else [], order="-submit", limit=_MOST_ASKED)
    jobs = load(app.store, wanted).filter(reached_at(stage).is_not_null())
    if jobs.is_empty():
        raise NotFound("the store has no jobs to ask about; `tocsin import` reads some")
    waiting = jobs.filter(pl.col("outcome").is_null())
    return jobs if waiting.is_empty() else waiting


def _most_informative(
    model: "FittedFailure", jobs: "pl.DataFrame", known: "Known", stage: Stage, number: int
) -> "pl.DataFrame":
    import numpy as np

    from tocsin.failure.history_features import history_features
    from tocsin.judge.answers import as_known
    from tocsin.models.asking import worth_asking

    jobs_then = as_known(jobs, stage)
    history = history_features(jobs_then, known, stage=stage)
    worth = worth_asking(model.probabilities(jobs_then, history), model.columns.matrix(jobs_then, history))
    return jobs[np.argsort(-worth, kind="stable")[:number]]


def _find(app: App, job: str, cluster: str | None) -> "pl.DataFrame":
    """A job in the store, else in the live queue."""
    import polars as pl

    try:
        return find_jobs(app, job, cluster)
    except NotFound as missing:
        if "@" in job:
            raise
        try:
            with live_cluster(app, cluster) as live:
                queue = live.queue()
        except (ClusterError, InputError):  # it does not answer, or is the demo
            raise missing from None
        found = parse_slurm_id(job)
        jobs = queue.filter(pl.col("job_id") == found.job_id, pl.col("task").eq_missing(found.task))
        if jobs.is_empty():
            raise NotFound(f"no job {job} in the store or in the queue of {live.name}") from None
        return jobs
