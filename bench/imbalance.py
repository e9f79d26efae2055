"""What helps against imbalance: the same model on rows as they are, weighted, over-sampled, made up (SMOTE), or chosen.

First 80 % by time train, the last 20 % are predicted; stage submit, target unsuccessful, the parameters that every search
starts from. SMOTE and random over-sampling make both classes equally many; active learning starts from a tenth of the
rows and asks for more, uncertainty times density, until half are labelled.
"""

import os
from collections.abc import Callable, Sequence
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
from tocsin.failure.features import FEATURES
from tocsin.failure.history_features import history_features
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
METRICS = ("auc", "average_precision", "f1", "precision", "recall", "brier")
Rows = tuple[Any, Any, Any]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    return {name: compared(log()) for name, log in logs(folder) if any(word in name for word in LOGS)}


def compared(log: pl.DataFrame) -> dict[str, Any]:
    """Each strategy on all that is known at submit; then, for what knowledge is worth, rows as they are with less and with more."""
    jobs = log.filter(pl.col("outcome").is_in(LABELS)).sort("submit", "job_id")
    y = jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(float)
    known, X = _features(jobs, log, Stage.SUBMIT)
    told = [place for place, name in enumerate(known) if FEATURES[name].family in ("request", "time")]
    found = {name: _judged(make, jobs, X, y) for name, make in STRATEGIES.items()}
    knowing = {
        "the request alone": _judged(as_they_are, jobs, X[:, told], y),
        "the request and history": found["none"],
        "the finished record (known only after the end)": _judged(
            as_they_are, jobs, _features(jobs, log, Stage.END)[1], y
        ),
    }
    test = first_last(jobs["submit"].to_numpy(), jobs["known_at"].to_numpy()).test
    return {"failing": round(float(y[test].mean()), 4), "strategies": found, "knowing": knowing}


def _features(jobs: pl.DataFrame, log: pl.DataFrame, stage: Stage) -> tuple[Sequence[str], Any]:
    columns, X = Columns.fit(jobs, history_features(jobs, Replay(log), stage=stage), stage=stage, zone="UTC")
    return columns.names, X


def _judged(make: Callable[[Any, Any], Rows], jobs: pl.DataFrame, X: Any, y: Any) -> dict[str, Any]:
    """Ranked, calibrated and with the best F1's threshold, both inside the training; and as HPE has it, at a raw score of 0.5."""
    step = first_last(jobs["submit"].to_numpy(), jobs["known_at"].to_numpy())
    kept = mature(jobs[step.train].with_columns(place=pl.Series(step.train)))["place"].to_numpy()[-LATEST:]
    later = first_last(jobs["submit"].to_numpy()[kept], jobs["known_at"].to_numpy()[kept], share=0.8)
    early = _trained(make, X[kept[later.train]], y[kept[later.train]])
    held = kept[later.test]
    curve = calibrate(early(X[held]), y[held]).calibrator
    threshold = best_f1(y[held], curve.apply(early(X[held])))
    raw = _trained(make, X[kept], y[kept])(X[step.test])
    p, truth = curve.apply(raw), y[step.test]
    return {
        **{name: round(measure(name, truth, p, threshold=threshold), 4) for name in METRICS},
        "at_half": {
            "failed": _class(truth > 0, raw >= 0.5),
            "completed": _class(truth == 0, raw < 0.5),
            "accuracy": round(float(((truth > 0) == (raw >= 0.5)).mean()), 4),
        },
    }


def _class(positive: Any, said: Any) -> list[float]:
    """Precision, recall and F1 of one class."""
    hits = float((positive & said).sum())
    precision, recall = hits / max(1, int(said.sum())), hits / max(1, int(positive.sum()))
    return [
        round(value, 4)
        for value in (precision, recall, 2 * precision * recall / max(1e-12, precision + recall))
    ]


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
