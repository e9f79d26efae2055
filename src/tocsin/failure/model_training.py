"""Trains a model: a plan from the first jobs, scores of all later jobs by models of earlier ones, then a fit on all rows.

```
 first 60 %            next 20 %                  last 20 %
 search, features      calibration, threshold     figures: these rows chose nothing
```

The scores come from four models with the same plan, each trained on what was known before the jobs that it scores. The
model for use is then fitted on all rows, and calibration and threshold are chosen again from the scores of the last
40 %.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.failure.holdout import Holdout
from tocsin.failure.labels import failed
from tocsin.failure.node_hours import node_hours
from tocsin.failure.plan import Plan, fitted, make_plan
from tocsin.models.engines import Booster, Engine, Matrix
from tocsin.models.splits import Step, first_last, folds

__all__ = ["FIRST", "SCORED", "train"]

FIRST = 0.6
"""The first share of the jobs, which chooses features, parameters and rounds."""
SCORED = 4
"""The rest is scored in this many parts, each by a model of all jobs before it."""


def train(
    engine: Engine,
    X: Matrix,
    names: tuple[str, ...],
    jobs: pl.DataFrame,
    *,
    plan: Plan | None,
    seed: int,
    budget: Budget,
    threads: int,
) -> tuple[Plan, Holdout, Booster, Matrix]:
    """`X` and `jobs` row by row, in order of time; a given plan is used as it is.

    The returned model saw all rows, because the last days say most about the next ones. The returned matrix has only
    the plan's columns.
    """
    y = failed(jobs)
    submit, known = (jobs[name].to_numpy() for name in ("submit", "known_at"))
    steps = [
        step
        for step in folds(submit, known, count=SCORED, first=FIRST)
        if len(step.test) and np.unique(y[step.train]).size > 1
    ]
    if not steps:
        raise ModelError(
            "all jobs in the first part of the training ended the same way; take a longer window or another target"
        )
    if plan is None:
        plan, steps = _planned(
            engine, X, names, y, submit, known, steps, seed=seed, budget=budget, threads=threads
        )
    if plan.names != names:
        places = {name: place for place, name in enumerate(names)}
        X = np.ascontiguousarray(X[:, [places[name] for name in plan.names]])
    holdout = _scored(plan, engine, X, jobs, steps, seed=seed, threads=threads)
    return plan, holdout, fitted(plan, engine, X, y, seed=seed, threads=threads), X


def _planned(
    engine: Engine,
    X: Matrix,
    names: tuple[str, ...],
    y: NDArray[np.float64],
    submit: NDArray[np.int64],
    known: NDArray[np.int64],
    steps: list[Step],
    *,
    seed: int,
    budget: Budget,
    threads: int,
) -> tuple[Plan, list[Step]]:
    """A plan from what the first step knew, or from a later one if that is too little; and the remaining steps."""
    for place, step in enumerate(steps):
        rows = step.train
        try:
            plan = make_plan(
                engine,
                X[rows],
                names,
                y[rows],
                submit[rows],
                known[rows],
                seed=seed,
                budget=budget,
                threads=threads,
            )
        except ModelError:
            if place == len(steps) - 1:
                raise
        else:
            return plan, steps[place:]
    raise AssertionError("there is at least one step")


def _scored(
    plan: Plan,
    engine: Engine,
    X: Matrix,
    jobs: pl.DataFrame,
    steps: list[Step],
    *,
    seed: int,
    threads: int,
) -> Holdout:
    y, scores = failed(jobs), []
    for step in steps:
        early = fitted(plan, engine, X[step.train], y[step.train], seed=seed, threads=threads)
        scores.append(early.predict(X[step.test]))
    rows = np.concatenate([step.test for step in steps])
    submit, known = (jobs[name].to_numpy()[rows] for name in ("submit", "known_at"))
    half = first_last(submit, known, share=0.5) if len(rows) > 1 else Step(0, np.arange(0), np.arange(1))
    return Holdout(
        scores=np.concatenate(scores),
        failed=y[rows],
        submit=submit,
        hours=node_hours(jobs)[rows],
        chooses=np.isin(np.arange(len(rows)), half.train),
        measures=np.isin(np.arange(len(rows)), half.test),
    )
