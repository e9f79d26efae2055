"""What helps against imbalance: the same model on rows as they are, weighted, over-sampled, made up (SMOTE), or chosen.

First 80 % by time train, the last 20 % are predicted; stage submit, target unsuccessful, the parameters that every search
starts from. SMOTE and random over-sampling make both classes equally many; active learning starts from a tenth of the
rows and asks for more, uncertainty times density, until half are labelled.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.neighbors import NearestNeighbors

from bench.failure import LABELS, logs
from bench.rivals import best_f1
from tocsin.core.outcomes import Outcome
from tocsin.core.stages import Stage
from tocsin.failure.columns import Columns
from tocsin.failure.labels import LATEST, mature
from tocsin.failure.plan import START
from tocsin.history.replay import Replay
from tocsin.models.asking import worth_asking
from tocsin.models.calibration import calibrate
from tocsin.models.engines import engine
from tocsin.models.metrics import measure
from tocsin.models.splits import first_last

__all__ = ["run"]

LOGS = ("KTH", "Thunder")
ROUNDS = 200
Rows = tuple[Any, Any, Any]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    return {name: compared(log()) for name, log in logs(folder) if any(word in name for word in LOGS)}


def compared(log: pl.DataFrame) -> dict[str, Any]:
    jobs = log.filter(pl.col("outcome").is_in(LABELS)).sort("submit", "job_id")
    _, X = Columns.fit(jobs, Replay(log).features(jobs, stage=Stage.SUBMIT), stage=Stage.SUBMIT, zone="UTC")
    y = jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(float)
    step = first_last(jobs["submit"].to_numpy(), jobs["known_at"].to_numpy())
    kept = mature(jobs[step.train].with_columns(place=pl.Series(step.train)))["place"].to_numpy()[-LATEST:]
    later = first_last(jobs["submit"].to_numpy()[kept], jobs["known_at"].to_numpy()[kept], share=0.8)
    found = {}
    for name, make in STRATEGIES.items():
        early = _trained(make, X[kept[later.train]], y[kept[later.train]])
        held = kept[later.test]
        curve = calibrate(early(X[held]), y[held]).calibrator
        threshold = best_f1(y[held], curve.apply(early(X[held])))
        p = curve.apply(_trained(make, X[kept], y[kept])(X[step.test]))
        found[name] = {
            metric: round(measure(metric, y[step.test], p, threshold=threshold), 4)
            for metric in ("auc", "average_precision", "f1", "precision", "recall", "brier")
        }
    return {"failing": round(float(y[step.test].mean()), 4), "strategies": found}


def _trained(make: Callable[[Any, Any], Rows], X: Any, y: Any) -> Callable[[Any], Any]:
    rows, labels, weight = make(X, y)
    return (
        engine("lightgbm").train(rows, labels, weight=weight, parameters=START, seed=0, rounds=ROUNDS).predict
    )


def as_they_are(X: Any, y: Any) -> Rows:
    return X, y, None


def weighted(X: Any, y: Any) -> Rows:
    return X, y, np.where(y > 0, (1 - y.mean()) / y.mean(), 1.0)


def oversampled(X: Any, y: Any) -> Rows:
    few, many = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    more = np.random.default_rng(0).choice(few, max(0, len(many) - len(few)))
    rows = np.concatenate([np.arange(len(y)), more])
    return X[rows], y[rows], None


def smote(X: Any, y: Any) -> Rows:
    """Between each drawn failure and one of its five nearest (Chawla et al. 2002); gaps stay gaps where one has them."""
    chance = np.random.default_rng(0)
    few = X[y > 0]
    filled = np.nan_to_num((few - np.nanmean(X, axis=0)) / (np.nanstd(X, axis=0) + 1e-9))
    near = NearestNeighbors(n_neighbors=6).fit(filled).kneighbors(filled, return_distance=False)[:, 1:]
    drawn = chance.integers(len(few), size=max(0, int((y == 0).sum() - (y > 0).sum())))
    other = few[near[drawn, chance.integers(5, size=len(drawn))]]
    made = few[drawn] + chance.random((len(drawn), 1), dtype=np.float32) * (other - few[drawn])
    return np.vstack([X, made.astype(np.float32)]), np.r_[y, np.ones(len(made))], None


def asked(X: Any, y: Any) -> Rows:
    """Five rounds of asking, from a tenth of the rows to half of them."""
    chance = np.random.default_rng(0)
    known = np.zeros(len(y), dtype=bool)
    known[chance.choice(len(y), len(y) // 10, replace=False)] = True
    for _ in range(4):
        p = _trained(as_they_are, X[known], y[known])(X[~known])
        worth = worth_asking(p, X[~known])
        known[np.flatnonzero(~known)[np.argsort(-worth, kind="stable")[: len(y) // 10]]] = True
    return X[known], y[known], None


def half(X: Any, y: Any) -> Rows:
    """As many rows as active learning asks for, drawn at random."""
    rows = np.sort(np.random.default_rng(0).choice(len(y), len(y) // 2, replace=False))
    return X[rows], y[rows], None


STRATEGIES: dict[str, Callable[[Any, Any], Rows]] = {
    "none": as_they_are,
    "class weight": weighted,
    "random over-sampling": oversampled,
    "SMOTE": smote,
    "active learning (half the rows)": asked,
    "half the rows at random": half,
}
