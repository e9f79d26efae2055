"""`tocsin train failure`, `threshold` and `predict`: the failure model made, set and asked."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tocsin.cli import options
from tocsin.cli.backtest import rule_of, stages, targets, threads
from tocsin.cli.logs import log_options, read_jobs
from tocsin.cli.output import Column, count, print_json, print_table, say
from tocsin.cli.settings import Context
from tocsin.core.errors import InputError, ModelError, NotFound
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.detector import Parts, Past
    from tocsin.failure.fitted import FittedFailure
    from tocsin.learn.training import Kept
    from tocsin.store.database import Store

__all__ = ["predict", "threshold", "train_failure"]

_MOST_ASKED = 2_000
_ENGINES = ("lightgbm", "xgboost", "catboost", "bagged")
_LINES = 25


@click.command("failure")
@log_options
@stages
@targets
@click.option("--engine", type=click.Choice(_ENGINES), default="lightgbm", show_default=True)
@click.option("--rule", metavar="KIND=VALUE", default="precision_at_least=0.8", show_default=True,
              help="Rule for the threshold, as in `tocsin threshold`.")  # fmt: skip
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Trials of the search.")  # fmt: skip
@click.option("--shortest", type=click.IntRange(min=0), default=0, metavar="SECONDS",
              help="Leave out jobs that ran for less (HPE: 120).")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("--promote/--no-promote", default=True, show_default=True, help="Put it in service.")
@options.as_json
@click.pass_obj
def train_failure(
    context: Context,
    log: str | None,
    use_store: bool,
    cluster: str | None,
    tz: str | None,
    mapping: str | None,
    columns: str | None,
    stage: str,
    target: str | None,
    engine: str,
    rule: str,
    trials: int,
    shortest: int,
    seed: int,
    promote: bool,
    as_json: bool,
) -> None:
    """Train what foresees that a job fails.

    On the jobs of the store (as without LOG), or of a LOG. The model is kept with its card, curves and pictures.
    """
    chosen = rule_of(rule)
    jobs = read_jobs(
        context,
        log,
        use_store or log is None,
        cluster=cluster,
        tz=tz,
        mapping=mapping,
        columns=columns,
        quiet=as_json,
    )
    import polars as pl

    from tocsin.core.detector import Budget
    from tocsin.failure.detector import FailureDetector
    from tocsin.history.replay import Replay
    from tocsin.learn.training import train_failure as run
    from tocsin.models.registry import Registry

    found = sorted(jobs["cluster"].unique())
    if len(found) > 1:
        raise InputError(f"there are jobs of {len(found)} clusters: {', '.join(found)}; name one with -M")
    detector = FailureDetector(
        target=Target(target) if target else None,
        rule=chosen,
        engine=engine,
        zone=options.zone_of(context, cluster or found[0], tz).key,
        threads=threads(),
    )
    short = (pl.col("elapsed") < shortest).fill_null(False) if shortest else pl.lit(False)
    kept = run(
        jobs.filter(~short),
        Replay(jobs),
        Registry(context.folder.prepare().models),
        detector,
        stage=Stage(stage),
        budget=Budget(trials=trials),
        seed=seed,
        promote=promote,
    )
    if shortest and not as_json:
        dropped = jobs.height - jobs.filter(~short).height
        say(f"{count(dropped, 'job')} that ran for less than {shortest} s taught nothing")
    _tell_kept(context, kept, as_json)


def _tell_kept(context: Context, kept: "Kept", as_json: bool) -> None:
    model = kept.model
    chosen = model.calibrated.threshold
    if as_json:
        print_json(
            {
                "version": kept.version,
                "stage": str(model.columns.stage),
                "target": str(model.target),
                "rows": model.rows,
                "features": len(model.columns.names),
                "dropped": dict(model.plan.dropped),
                "importances": dict(model.plan.importances),
                "threshold": chosen.to_json(),
                "split": kept.card.figures[0].split,
                "figures": {f.name: f.value for f in model.calibrated.figures},
                "in_service": kept.in_service,
            }
        )
        return
    click.echo(
        f"failure {kept.version}: {model.target} at {model.columns.stage}, learned from {count(model.rows, 'job')} "
        f"with {len(model.columns.names)} features ({len(model.plan.dropped)} left out)"
    )
    click.echo(f"  {kept.card.figures[0].split}:")
    for figure in model.calibrated.figures:
        if figure.value is not None:
            interval = "" if figure.low is None else f"  [{figure.low:.4f}, {figure.high:.4f}]"
            click.echo(f"  {figure.name:<20} {figure.value:.4f}{interval}")
    click.echo(f"  rings from probability {chosen.value:.3f} on: {chosen.text}")
    top = ", ".join(list(model.plan.importances)[:5])
    click.echo(f"  what tells most: {top}")
    folder = context.folder.models / "failure" / kept.version
    click.echo(f"curves and pictures: {folder}")
    click.echo(
        "it is in service"
        if kept.in_service
        else f"to put it in service: tocsin models promote failure {kept.version}"
    )


@click.command()
@stages
@click.option("--rule", metavar="KIND=VALUE", help="Set the threshold by this rule.")
@options.no_header
@options.parsable
@options.as_json
@click.pass_obj
def threshold(
    context: Context, stage: str, rule: str | None, noheader: bool, parsable2: bool, as_json: bool
) -> None:
    """Show what each threshold would have done, or set one by a rule.

    Rules: precision_at_least=0.9, recall_at_least=0.5, alarms_per_day_at_most=20, least_cost=1 (what a delayed node-hour
    costs beside a wasted one). What is shown was measured on the last fifth of the training, which the model that was
    measured had not seen.
    """
    from tocsin.learn.training import set_rule

    registry, model, version = _champion(context, Stage(stage))
    if rule is not None:
        kept = set_rule(registry, model, rule_of(rule), parent=version)
        chosen = kept.model.calibrated.threshold
        if as_json:
            print_json({"version": kept.version, "before": version, "threshold": chosen.to_json()})
            return
        click.echo(f"failure {kept.version} rings from probability {chosen.value:.3f} on: {chosen.text}")
        if not chosen.met:
            say("note: the rule could not be met on the jobs that were predicted; this is the nearest")
        say(f"undo: tocsin models promote failure {version}")
        return
    now = model.calibrated.threshold
    others = [row for row in model.calibrated.table if row.value != now.value]
    if not as_json:
        others = others[:: max(1, len(others) // _LINES)]
    rows = [
        row.to_json() | {"chosen": row is now}
        for row in sorted([*others, now], key=lambda row: row.value, reverse=True)
    ]
    if as_json:
        print_json({"version": version, "threshold": now.to_json(), "table": rows})
        return
    print_table(rows, _THRESHOLDS, header=not noheader, parsable=parsable2)
    if not parsable2:
        days = f"{now.alarms_per_day:.1f} alarms a day"
        say(f"failure {version} rings from probability {now.value:.3f} on ({now.rule}): {now.text}, {days}")


def _number(name: str, digits: int) -> Any:
    return lambda row: "" if row[name] is None else f"{row[name]:,.{digits}f}"


_THRESHOLDS = [
    Column("Threshold", _number("value", 3), 9),
    Column("AlarmsADay", _number("alarms_per_day", 1), 10),
    Column("Precision", _number("precision", 3), 9),
    Column("Recall", _number("recall", 3), 6),
    Column("SavedNodeH", _number("saved", 0), 12),
    Column("DelayedNodeH", _number("delayed", 0), 12),
    Column("WastedNodeH", _number("wasted", 0), 12),
    Column("Set", lambda row: "yes" if row["chosen"] else "", -3),
]


@click.command()
@click.argument("which", nargs=-1, metavar="JOB...")
@click.option("--ask", type=click.IntRange(min=1), metavar="N",
              help="Instead of JOB: the N jobs of the store that are most worth asking their users about.")  # fmt: skip
@options.cluster
@stages
@options.no_header
@options.parsable
@options.as_json
@click.pass_obj
def predict(
    context: Context,
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
    from tocsin.judge.judge import as_known
    from tocsin.store.jobs import Filter, load

    _, model, version = _champion(context, Stage(stage))
    with context.store() as store:
        jobs = (
            pl.concat([_asked(context, store, one, cluster) for one in which])
            if which
            else _open_jobs(store, cluster, Stage(stage))
        )
        clusters = sorted(jobs["cluster"].unique())
        if len(clusters) > 1:
            raise InputError(
                f"the jobs are of {len(clusters)} clusters: {', '.join(clusters)}; name one with -M"
            )
        past = Replay(load(store, Filter(clusters=clusters)))
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


def _open_jobs(store: "Store", cluster: str | None, stage: Stage) -> "pl.DataFrame":
    """Jobs that reached the stage and have not ended; where there are none, the latest."""
    import polars as pl

    from tocsin.failure.labels import reached
    from tocsin.store.jobs import Filter, load

    latest = load(store, Filter(clusters=[cluster] if cluster else [], order="-submit", limit=_MOST_ASKED))
    jobs = latest.filter(reached(stage))
    waiting = jobs.filter(pl.col("outcome").is_null())
    if jobs.is_empty():
        raise NotFound("the store has no jobs to ask about; `tocsin import` reads some")
    return jobs if waiting.is_empty() else waiting


def _worth(
    model: "FittedFailure", jobs: "pl.DataFrame", past: "Past", stage: Stage, number: int
) -> "pl.DataFrame":
    import numpy as np

    from tocsin.judge.judge import as_known
    from tocsin.models.asking import worth_asking

    known = as_known(jobs, stage)
    history = past.features(known, stage=stage)
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


def _asked(context: Context, store: "Store", which: str, cluster: str | None) -> "pl.DataFrame":
    """A job of the store, or else of the live queue."""
    import polars as pl

    from tocsin.cli.clusters import live_cluster
    from tocsin.cli.jobs import found_jobs
    from tocsin.core.errors import ClusterError
    from tocsin.core.ids import parse_slurm_id

    try:
        return found_jobs(store, which, cluster)
    except NotFound as missing:
        if "@" in which:
            raise
        try:
            live = live_cluster(context, cluster)
            queue = live.queue()
        except ClusterError:
            raise missing from None
        found = parse_slurm_id(which)
        jobs = queue.filter(pl.col("job_id") == found.job_id, pl.col("task").eq_missing(found.task))
        if jobs.is_empty():
            raise NotFound(f"no job {which} in the store or in the queue of {live.name}") from None
        return jobs


def _champion(context: Context, stage: Stage) -> "tuple[Any, FittedFailure, str]":
    from tocsin.failure.detector import FailureDetector
    from tocsin.models.registry import Registry

    registry = Registry(context.folder.models)
    if registry.champion("failure", stage) is None:
        raise ModelError(
            f"no failure model is trained for {stage} yet; `tocsin train failure --stage {stage}` trains one on the store"
        )
    folder, card = registry.open_verified("failure", stage=stage)
    return registry, FailureDetector(threads=1).load(Path(folder)), card.version
