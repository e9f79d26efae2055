"""`train`: the failure model, and the models that classify jobs by their scripts and by their execution."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.allow import allow_list_reader
from tocsin.app.app import App
from tocsin.app.champions import chosen_cluster
from tocsin.app.first_metrics import measure_stored
from tocsin.app.judge import open_screener
from tocsin.app.logs import LogRequest, one_cluster, read_jobs
from tocsin.app.text import count
from tocsin.app.threshold import parse_rule
from tocsin.core.errors import InputError
from tocsin.core.outcomes import Target
from tocsin.core.stages import Stage

if TYPE_CHECKING:
    import polars as pl

    from tocsin.learn.train_failure import TrainedFailure
    from tocsin.models.cards import Card
    from tocsin.workload.screening import Screener

__all__ = [
    "ExecutionRequest",
    "FailureRequest",
    "WorkloadRequest",
    "long_enough",
    "threads",
    "train_execution",
    "train_failure",
    "train_rules",
    "train_workload",
]


def long_enough(jobs: "pl.DataFrame", shortest: int) -> "pl.DataFrame":
    """The jobs that ran for at least this many seconds."""
    import polars as pl

    return jobs.filter((pl.col("elapsed") >= shortest).fill_null(True)) if shortest else jobs


def threads() -> int:
    """Cores to use for training; more than four gain little."""
    return min(4, len(os.sched_getaffinity(0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRequest:
    log: LogRequest
    stage: Stage
    target: Target | None
    engine: str
    rule: str
    trials: int
    shortest: int
    """Leave out jobs that ran for fewer seconds."""
    seed: int
    promote: bool


def train_failure(app: App, request: FailureRequest) -> dict[str, Any]:
    """Train the failure model on the jobs of a log or of the store, and store it with its card and curves."""
    if request.stage is Stage.EARLY and request.log.path is None:
        measure_stored(app)
    jobs = read_jobs(app, request.log)
    from tocsin.core.detector import Budget
    from tocsin.failure.detector import FailureDetector
    from tocsin.failure.shipped import shipped_model
    from tocsin.history.replay import Replay
    from tocsin.learn.feedback import with_answers
    from tocsin.learn.train_failure import train_failure as train

    cluster, trials = one_cluster(jobs), request.trials
    place = chosen_cluster(app, "failure", request.stage, request.log.cluster)
    if request.log.cluster is None and place not in (None, cluster):  # a log of another cluster
        if request.promote:
            app.notify(f"note: a model of its own stays in use on {place}; replace it with -M {place}")
        place = None
    used = long_enough(jobs, request.shortest)
    if request.log.path is None:
        used = with_answers(app.store, used)
    app.notify(
        f"training on {count(used.height, 'job')} with {count(trials, 'trial')}; this may take minutes"
    )
    app.home.prepare()
    trained = train(
        used,
        Replay(jobs),
        app.registry,
        FailureDetector(
            target=request.target,
            rule=parse_rule(request.rule),
            engine=request.engine,
            zone=app.zone(request.log.cluster or cluster, request.log.tz).key,
            threads=threads(),
            shipped=shipped_model(request.stage),
        ),
        stage=request.stage,
        budget=Budget(trials=trials, progress=partial(app.progress, "searching")),
        seed=request.seed,
        promote=request.promote,
        cluster=place,
        shortest=request.shortest,
    )
    too_short = jobs.height - used.height
    return {**_failure_report(trained), "cluster": place, "too_short": too_short, "promoted": request.promote}


def _failure_report(trained: "TrainedFailure") -> dict[str, Any]:
    model = trained.model
    figures = [figure for figure in trained.card.figures if figure.value is not None]
    return {
        "version": trained.version,
        "stage": str(model.columns.stage),
        "target": str(model.target),
        "rows": model.rows,
        "features": len(model.columns.names),
        "dropped": dict(model.plan.dropped),
        "importances": dict(model.plan.importances),
        "threshold": model.calibrated.threshold.to_json(),
        "split": trained.card.figures[0].split,
        "figures": {figure.name: figure.value for figure in figures},
        "intervals": {figure.name: [figure.low, figure.high] for figure in figures if figure.low is not None},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequest:
    days: float | None
    """Use the jobs that ended in the last days; by default, workload.alpha_days."""
    seed: int
    promote: bool
    cluster: str | None


def train_execution(app: App, request: ExecutionRequest) -> dict[str, Any]:
    """Train the model that classifies ended jobs by their execution, on the jobs in the store."""
    from tocsin.learn.train_execution import train_on_store

    app.home.prepare()
    trained = train_on_store(
        app.store,
        app.registry,
        now=int(time.time()),
        alpha_days=app.settings.workload.alpha_days if request.days is None else request.days,
        cluster=request.cluster,
        seed=request.seed,
        promote=request.promote,
    )
    return {
        "version": trained.version,
        "stage": str(Stage.END),
        "jobs": trained.model.rows,
        "operations": {
            name: {
                "jobs": each.rows,
                "positive": each.positive,
                "features": list(each.features),
                "dropped": dict(each.dropped),
                "gate": each.gate.to_json() if each.gate else None,
                "refused": each.refused,
            }
            for name, each in trained.model.operations.items()
        },
        "untrained": dict(trained.model.untrained),
        "promoted": trained.promoted,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRequest:
    operation: str
    data: Path
    """A folder of examples: scripts that are the operation in yes/, others in no/."""
    encoder: Path | None = None
    with_feedback: bool = False
    promote: bool = True


def train_workload(app: App, request: WorkloadRequest) -> dict[str, Any]:
    """Train the script classifier on examples of one operation; it is promoted only if it is no worse than before."""
    from tocsin.workload.own_examples import read_examples
    from tocsin.workload.site_training import operation_card, train_operation

    operation, data = request.operation, request.data
    if not data.is_dir():
        raise InputError(f'the folder "{data}" does not exist; name one with examples of {operation}')
    answered = _answered(app, operation) if request.with_feedback else []
    examples = read_examples(operation, data, more=answered)
    if examples.no_text:
        app.notify(f"ignored: {count(examples.no_text, 'file')} in {data} without text")
    if examples.contradicting:
        app.notify(f"ignored: {count(examples.contradicting, 'answer')} that contradict each other")
    trained = train_operation(open_screener(app), operation, examples, encoder=request.encoder)
    card = operation_card(
        trained.screener, operation, created=int(time.time()), data=data.name, training=trained
    )
    promoted = request.promote and trained.no_worse
    version = _add(app, trained.screener, card, f"trained on {operation}" if promoted else None)
    if promoted:
        _note_allow_list(app, [operation])
    return {
        "operation": operation,
        "examples": {"yes": len(examples.yes), "no": len(examples.no), "no_text": examples.no_text},
        "answered": len(answered) - examples.contradicting,
        "right": trained.now._asdict(),
        "right_before": trained.before._asdict() if trained.before else None,
        "worse": not trained.no_worse,
        "version": version,
        "stage": str(Stage.SUBMIT),
        "promoted": promoted,
    }


def train_rules(app: App, path: Path, *, promote: bool) -> dict[str, Any]:
    """Replace the rules of the script classifier in use with those in this file."""
    from tocsin.workload.rules import read_rules
    from tocsin.workload.site_training import operation_card

    rules = read_rules(path)
    names = [rule.operation for rule in rules]
    screener = open_screener(app).with_rules(rules)
    card = operation_card(screener, ", ".join(names), created=int(time.time()), data=path.name)
    version = _add(app, screener, card, f"rules of {path.name}" if promote else None)
    if promote:
        _note_allow_list(app, names)
    return {"operations": names, "version": version, "stage": str(Stage.SUBMIT), "promoted": promote}


def _add(app: App, screener: "Screener", card: "Card", promoted_because: str | None) -> str:
    app.home.prepare()
    version = app.registry.add("workload", screener.save, card, unless_stored=True)
    if promoted_because:
        app.registry.promote("workload", version, why=promoted_because, at=card.created)
    return version


def _answered(app: App, operation: str) -> list[tuple[str, bool]]:
    """The scripts of answered cases, and whether each is the operation."""
    from tocsin.learn.feedback import examples

    found, lost = examples(app.store, app.home.scripts)
    answered = [(example.text, example.label) for example in found if example.operation == operation]
    app.notify(f"using {count(len(answered), 'answered case')} of {operation}")
    if lost:
        app.notify(f"ignored: {count(lost, 'answered case')} whose script was pruned")
    return answered


def _note_allow_list(app: App, operations: Sequence[str]) -> None:
    """Warn that an added operation is for listed users only: without an entry, every such job raises an alarm."""
    from tocsin.judge.allow import DEFAULTS

    allowed, now = allow_list_reader(app).current(), int(time.time())
    for operation in operations:
        listed = any(entry.operation == operation for entry in allowed.entries)
        if operation not in DEFAULTS and allowed.rule(operation, now).name == "listed" and not listed:
            app.notify(
                f"note: only listed users may run {operation}, and nobody is listed, so every such job is rogue; "
                f"see: tocsin allow default {operation} allowed"
            )
