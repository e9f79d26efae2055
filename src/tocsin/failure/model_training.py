"""Train a model: plan, hold out the latest jobs for calibration, then fit on all rows."""

import numpy as np
import polars as pl

from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.failure.holdout import Holdout
from tocsin.failure.labels import failed
from tocsin.failure.node_hours import node_hours
from tocsin.failure.plan import Plan, fitted, make_plan
from tocsin.models.engines import Booster, Engine, Matrix
from tocsin.models.splits import first_last

__all__ = ["SHARE", "train"]

SHARE = 0.8
"""The first share of the jobs trains the model whose scores on the rest calibrate the final one."""


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
    """`X` and `jobs` row by row, in order of time; a plan that is given is used as it is.

    The holdout's scores come from a model by the same plan that saw only the first 80 %. The returned model saw all
    rows, because the last days say most about the next ones. The matrix returned has the plan's columns only.
    """
    y = failed(jobs)
    submit, known = (jobs[name].to_numpy() for name in ("submit", "known_at"))
    if plan is None:
        plan = make_plan(engine, X, names, y, submit, known, seed=seed, budget=budget, threads=threads)
    if plan.names != names:
        places = {name: place for place, name in enumerate(names)}
        X = np.ascontiguousarray(X[:, [places[name] for name in plan.names]])
    holdout = _hold_out(plan, engine, X, jobs, seed=seed, threads=threads)
    return plan, holdout, fitted(plan, engine, X, y, seed=seed, threads=threads), X


def _hold_out(
    plan: Plan, engine: Engine, X: Matrix, jobs: pl.DataFrame, *, seed: int, threads: int
) -> Holdout:
    y = failed(jobs)
    submit = jobs["submit"].to_numpy()
    step = first_last(submit, jobs["known_at"].to_numpy(), share=SHARE)
    if np.unique(y[step.train]).size < 2:
        raise ModelError(
            "all jobs in the first part of the training ended the same way; take a longer window or another target"
        )
    early = fitted(plan, engine, X[step.train], y[step.train], seed=seed, threads=threads)
    return Holdout(early.predict(X[step.test]), y[step.test], submit[step.test], node_hours(jobs)[step.test])
