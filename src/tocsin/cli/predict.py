"""`tocsin predict`: how likely jobs are to fail, and which are worth asking about."""

from typing import TYPE_CHECKING, Any

import click

from tocsin.app.app import App
from tocsin.cli import options
from tocsin.cli.failure import champion
from tocsin.cli.output import Column, print_json, print_table, say
from tocsin.core.errors import InputError, NotFound
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Known, Parts
    from tocsin.failure.fitted import FittedFailure

__all__ = ["predict"]

_MOST_ASKED = 2_000


@click.command()
@click.argument("which", nargs=-1, metavar="JOB...")
@click.option("--ask", type=click.IntRange(min=1), metavar="N",
              help="Instead of JOB: the N jobs of the store that are most worth asking their users about.")  # fmt: skip
@options.cluster
@options.stage
@options.no_header
@options.parsable
@options.as_json
@click.pass_obj
def predict(
    app: App,
    which: tuple[str, ...],
    ask: int | None,
    cluster: str | None,
    stage: str,
    noheader: bool,
    parsable2: bool,
    as_json: bool,
) -> None:
    """Say how likely jobs are to fail.

    JOB is an id or a key, of the store or of the live queue. The answer is as of the stage: what became known later is
    not looked at. With --ask, of the jobs that have not ended (or else of the latest), those that the model is least
    sure of and that stand for most others.
    """
    if bool(which) == (ask is not None):
        raise click.UsageError("name jobs, or --ask for those worth asking about; one of them")
    import polars as pl

    from tocsin.core.frames import key_text
    from tocsin.history.replay import Replay
    from tocsin.judge.hearing import as_known
    from tocsin.store.jobs import Filter, load

    jobs = (
        pl.concat([_asked(app, one, cluster) for one in which])
        if which
        else _open_jobs(app, cluster, Stage(stage))
    )
    clusters = sorted(jobs["cluster"].unique())
    if len(clusters) > 1:
        raise InputError(f"the jobs are of {len(clusters)} clusters: {', '.join(clusters)}; name one with -M")
    _, model, version = champion(app, Stage(stage), clusters[0])
    past = Replay(load(app.store, Filter(clusters=clusters)))
    if ask is not None:
        jobs = _worth(model, jobs, past, Stage(stage), ask)
    parts = model.assess(as_known(jobs, Stage(stage)), past, stage=Stage(stage))
    keys = jobs.select(key_text()).to_series().to_list()
    rows = [
        _row(key, job, part)
        for key, job, part in zip(keys, jobs.select("user", "name", "outcome").to_dicts(), parts, strict=True)
    ]
    if as_json:
        print_json([row | {"stage": stage, "model": version} for row in rows])
    else:
        print_table(rows, _PREDICTED, header=not noheader, parsable=parsable2)
        for row in rows:
            for why in row["missing"].values():
                say(f"note: {row['job']}: {why}")


def _open_jobs(app: App, cluster: str | None, stage: Stage) -> "pl.DataFrame":
    """Jobs that reached the stage and have not ended; where there are none, the latest."""
    import polars as pl

    from tocsin.core.frames import reached_at
    from tocsin.store.jobs import Filter, load

    latest = load(
        app.store, Filter(clusters=[cluster] if cluster else [], order="-submit", limit=_MOST_ASKED)
    )
    jobs = latest.filter(reached_at(stage).is_not_null())
    waiting = jobs.filter(pl.col("outcome").is_null())
    if jobs.is_empty():
        raise NotFound("the store has no jobs to ask about; `tocsin import` reads some")
    return jobs if waiting.is_empty() else waiting


def _worth(
    model: "FittedFailure", jobs: "pl.DataFrame", past: "Known", stage: Stage, number: int
) -> "pl.DataFrame":
    import numpy as np

    from tocsin.failure.history_features import history_features
    from tocsin.judge.hearing import as_known
    from tocsin.models.asking import worth_asking

    known = as_known(jobs, stage)
    history = history_features(known, past, stage=stage)
    worth = worth_asking(model.probabilities(known, history), model.columns.matrix(known, history))
    return jobs[np.argsort(-worth, kind="stable")[:number]]


def _row(key: str, job: dict[str, Any], parts: "Parts") -> dict[str, Any]:
    said = parts.failure
    return {
        "job": key,
        "user": job["user"],
        "name": job["name"],
        "probability": said.probability if said else None,
        "will_fail": said.will_fail if said else None,
        "causes": dict(said.causes) if said else {},
        "outcome": job["outcome"],
        "missing": dict(parts.missing),
    }


_PREDICTED = [
    Column("Job", lambda row: row["job"], -28),
    Column("User", lambda row: row["user"] or "", -10),
    Column("JobName", lambda row: row["name"] or "", -14),
    Column("Risk", lambda row: "" if row["probability"] is None else f"{row['probability']:.1%}", 6),
    Column("WillFail", lambda row: {None: "", True: "yes", False: "no"}[row["will_fail"]], -8),
    Column("By", lambda row: next(iter(row["causes"]), ""), -14),
    Column("Outcome", lambda row: row["outcome"] or "", -13),
]


def _asked(app: App, which: str, cluster: str | None) -> "pl.DataFrame":
    """A job of the app.store, or else of the live queue."""
    import polars as pl

    from tocsin.app.clusters import live_cluster
    from tocsin.app.jobs import find_jobs
    from tocsin.core.errors import ClusterError
    from tocsin.core.ids import parse_slurm_id

    try:
        return find_jobs(app, which, cluster)
    except NotFound as missing:
        if "@" in which:
            raise
        try:
            with live_cluster(app, cluster) as live:
                queue = live.queue()
        except ClusterError:
            raise missing from None
        found = parse_slurm_id(which)
        jobs = queue.filter(pl.col("job_id") == found.job_id, pl.col("task").eq_missing(found.task))
        if jobs.is_empty():
            raise NotFound(f"no job {which} in the store or in the queue of {live.name}") from None
        return jobs
