"""The published recipe: XGBoost on the log's own fields, parameters by random search (JFP, section III)."""

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.models.engines import Matrix, engine
from tocsin.models.metrics import measure
from tocsin.models.space import Real, Whole
from tocsin.models.splits import first_last

__all__ = ["FINISHED", "STARTED", "SUBMITTED", "Published", "fields_matrix", "published"]

SUBMITTED = ("user", "group", "account", "partition", "qos", "executable", "name", "req_nodes", "req_cpus", "req_tasks",
             "req_memory", "req_gpus", "time_limit")  # fmt: skip
STARTED = (*SUBMITTED, "wait", "alloc_nodes", "alloc_cpus", "segment")
FINISHED = (*STARTED, "elapsed", "cpu_seconds", "max_memory")
ROUNDS = 400
SEARCH_ROWS = 60_000


@dataclass(frozen=True, slots=True)
class Published:
    """Predictions for the test jobs, and the threshold with the best F1 on the validation jobs."""

    p: NDArray[np.float64]
    threshold: float


def fields_matrix(jobs: pl.DataFrame, names: tuple[str, ...], train: NDArray[np.int64]) -> Matrix:
    """The fields as numbers: text values are numbered as they appear in training; unseen ones are missing values."""
    columns = []
    frame = jobs.with_columns(wait=pl.col("start") - pl.col("submit"))
    for name in names:
        values = frame[name]
        if values.dtype == pl.String:
            seen = values[train].drop_nulls().unique(maintain_order=True).to_list()
            values = values.replace_strict(
                seen, list(range(len(seen))), default=None, return_dtype=pl.Float32
            )
        columns.append(values.cast(pl.Float32).fill_null(float("nan")).to_numpy())
    hours = frame["submit"].to_numpy()
    columns += [(hours % 86400 / 3600).astype(np.float32), (hours // 86400 % 7).astype(np.float32)]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def published(
    X: Matrix, y: NDArray[Any], submit: NDArray[Any], known: NDArray[Any], train: NDArray[np.int64],
    test: NDArray[np.int64], *, trials: int, seed: int = 0,
) -> Published:  # fmt: skip
    """Random search validated on the last quarter of the training jobs, then a training on all of them."""
    xgboost, chance = engine("xgboost"), random.Random(seed)
    latest = train[-SEARCH_ROWS:]
    step = first_last(submit[latest], known[latest], share=0.75)
    early, late = latest[step.train], latest[step.test]
    best: tuple[float, dict[str, Any], int, NDArray[np.float64]] | None = None
    for _ in range(trials):
        parameters = {name: _draw(values, chance) for name, values in xgboost.space.items()}
        model = xgboost.train(
            X[early], y[early], parameters=parameters, seed=seed, rounds=ROUNDS, valid=(X[late], y[late])
        )
        p = model.predict(X[late])
        score = measure("average_precision", y[late], p)
        if best is None or score > best[0]:
            best = (score, parameters, model.rounds, p)
    assert best is not None, "at least one trial"
    model = xgboost.train(X[train], y[train], parameters=best[1], seed=seed, rounds=best[2])
    return Published(model.predict(X[test]), best_f1(y[late], best[3]))


def best_f1(y: NDArray[Any], p: NDArray[Any]) -> float:
    order = np.argsort(-p, kind="stable")
    hits = np.cumsum(y[order])
    f1 = 2 * hits / (np.arange(1, len(y) + 1) + y.sum())
    return float(p[order][int(np.argmax(f1))])


def _draw(values: Any, chance: random.Random) -> Any:
    if isinstance(values, Whole):
        return chance.randint(values.low, values.high)
    assert isinstance(values, Real)
    if values.log:
        return float(np.exp(chance.uniform(np.log(values.low), np.log(values.high))))
    return chance.uniform(values.low, values.high)
