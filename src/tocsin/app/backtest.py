"""`backtest`: how a failure model would have performed, week by week, before anybody relies on it."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.logs import LogRequest, one_cluster, read_jobs
from tocsin.app.text import count
from tocsin.app.threshold import parse_rule
from tocsin.app.train import long_enough, threads
from tocsin.core.errors import InputError
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    import polars as pl

    from tocsin.learn.walk import StepResult, Walk

__all__ = ["BacktestRequest", "backtest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    log: LogRequest
    stage: Stage
    target: Target | None
    engine: str
    shortest: int
    """Leave out jobs that ran for fewer seconds; they still count in the history."""
    train_days: float | None
    every_days: float
    trials: int
    rule: str
    predictions: str | None
    """Write one line of JSON per job to this file."""
    audit: bool
    """Prove that no prediction depends on what became known later."""


def backtest(app: App, request: BacktestRequest) -> dict[str, Any]:
    """Walk forward in time: train on what was known, predict the next days, move on."""
    jobs = read_jobs(app, request.log)
    import polars as pl

    from tocsin.core.detector import Budget
    from tocsin.core.fields import KEY
    from tocsin.failure.detector import FailureDetector
    from tocsin.failure.labels import default_target
    from tocsin.failure.shipped import shipped_model
    from tocsin.history.replay import Replay
    from tocsin.judge.plugins import find_detectors
    from tocsin.learn.audit import audit
    from tocsin.learn.report import report
    from tocsin.learn.walk import Walk, WalkRequest

    cluster = one_cluster(jobs)
    zone = app.zone(request.log.cluster or cluster, request.log.tz).key
    target, rule = request.target or default_target(jobs), parse_rule(request.rule)
    _require_outcomes(jobs, target)
    detector = FailureDetector(
        target=target,
        rule=rule,
        zone=zone,
        engine=request.engine,
        threads=threads(),
        shipped=shipped_model(request.stage),
    )
    options = WalkRequest(
        stage=request.stage,
        every_days=request.every_days,
        train_days=request.train_days,
        budget=Budget(trials=request.trials),
    )
    rules = {name: each for name, each in find_detectors().items() if not each.learns}

    used = long_enough(jobs, request.shortest).select(KEY)

    def walk(jobs: pl.DataFrame, start: int | None = None) -> Walk:
        kept = jobs.join(used, on=KEY, how="semi", nulls_equal=True)
        return Walk(kept, Replay(jobs), detector, options, rules=rules, start=start)

    steps = _walk(app, walk(jobs), request.predictions)
    found = {
        "stage": str(request.stage),
        "split": _split(request),
        "engine": request.engine,
        "shipped": detector.shipped is not None,
        "too_short": jobs.height - used.height,
        "failing": sorted(TARGETS[target]),
        "left_out": _left_out(pl.concat([step.jobs["outcome"] for step in steps]), target),
        **report(steps, target, rule=rule).to_json(),
        "rule": asdict(rule),
        "first": format_instant(steps[0].step.cut),
        "refused": next((step.refused for step in reversed(steps) if step.refused), None),
    }
    if request.audit:
        proof = audit(jobs, steps, walk, progress=partial(app.progress, "auditing"))
        found["audit"] = {**asdict(proof), "until": format_instant(proof.until), "clean": proof.clean}
    return found


def _left_out(outcomes: "pl.Series", target: Target) -> dict[str, int]:
    """The number of jobs by outcome, of those that the target does not count; the most frequent first."""
    counted = {Outcome.COMPLETED, *TARGETS[target]}
    rows = Counter(outcomes.fill_null("without an outcome").to_list()).most_common()
    return {name: number for name, number in rows if name not in counted}


def _require_outcomes(jobs: "pl.DataFrame", target: Target) -> None:
    """Refuse a log in which nothing says how its jobs ended."""
    left_out = _left_out(jobs["outcome"], target)
    if sum(left_out.values()) == jobs.height:
        found = ", ".join(f"{number:,} {name}" for name, number in left_out.items())
        raise InputError(
            f"none of {count(jobs.height, 'job')} ended in a way that the target {target} counts: {found}; give a log that says how "
            "jobs ended (the states in a table may need a mapping, -m), or another --target"
        )


def _walk(app: App, walk: "Walk", predictions: str | None) -> "list[StepResult]":
    """Run all steps; the predictions of each are written as soon as it is done."""
    steps: list[StepResult] = []
    with ExitStack() as stack:
        out = stack.enter_context(_open(predictions)) if predictions else None
        for step in walk:
            steps.append(step)
            if out is not None:
                out.writelines(_lines(step))
            app.progress("walking", len(steps), len(walk.steps))
    return steps


@contextmanager
def _open(path: str) -> Iterator[IO[str]]:
    """Open the file of predictions before the walk, so that a path that cannot be written fails early."""
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            yield out
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; name another file") from None


def _lines(step: "StepResult") -> Iterator[str]:
    from tocsin.core.frames import key_text

    rows = step.jobs.select(key_text(), "submit", "outcome").iter_rows()
    for row, ((job, submit, outcome), p) in enumerate(zip(rows, step.probability.tolist(), strict=True)):
        alarms = [source for source, flags in step.alarms.items() if flags[row]]
        line = {
            "job": job,
            "submit": format_instant(submit),
            "probability": p,
            "alarms": alarms,
            "outcome": outcome,
        }
        yield json.dumps(line) + "\n"


def _split(request: BacktestRequest) -> str:
    days = request.train_days
    known = "everything known by then" if days is None else f"the known jobs of the last {days:g} days"
    span = "day" if request.every_days == 1 else f"{request.every_days:g} days"
    return f"retrained every {span} on {known}, then predicted the next {span}"
