"""A training plan: what a search finds once, so that later trainings need no search."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.detector import Budget
from tocsin.failure.feature_selection import select
from tocsin.failure.features import monotone
from tocsin.models.engines import Booster, Engine, Matrix
from tocsin.models.search import search_engine
from tocsin.models.space import Choice, Real, Space, Whole
from tocsin.models.splits import folds

__all__ = ["START", "Plan", "fitted", "make_plan", "plan_from_json"]

SEARCH_ROWS = 30_000
"""The search uses the latest rows."""
TREE_ROWS = 40_000
"""A tree uses at most this many rows. (SDSC-BLUE, validation in the first 80 %: AUC 0.8896 and AP 0.726 with a quarter
of 155,000 rows for each tree, 0.8888 and 0.719 with four fifths of them, in twice the time.)"""
ROUNDS = 200
LEAVES = 50
"""Leaves are small enough that a tree can have at least this many."""
FEWEST_ROUNDS = 10
_IMPORTANT_ROWS = 2_000

START: Mapping[str, Any] = {
    "extra_trees": True,
    "num_leaves": 15,
    "learning_rate": 0.08,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.8,
    "lambda_l2": 5.0,
}
"""Where the search begins. Random thresholds act like more rows: on validation inside the first 80 %, they
raise AUC from 0.848 to 0.860 on KTH-SP2 and from 0.746 to 0.757 on DOST-COARE, and cost 0.001 on SDSC-BLUE."""

SPACE: Space = {
    "extra_trees": Choice((True, False)),
    "num_leaves": Whole(6, 31, log=True),
    "learning_rate": Real(0.05, 0.15, log=True),
    "min_data_in_leaf": Whole(20, 400, log=True),
    "feature_fraction": Real(0.1, 0.4),
    "bagging_fraction": Real(0.5, 1.0),
    "lambda_l2": Real(1e-2, 30.0, log=True),
}

_FIXED: Mapping[str, Any] = {"max_bin": 63, "bin_construct_sample_cnt": 20_000}
"""Fewer bins, from fewer rows, cost nothing on the four logs tried, and halve the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The features, parameters and number of rounds; and how they were found."""

    names: tuple[str, ...]
    parameters: Mapping[str, Any]
    rounds: int
    dropped: Mapping[str, str]
    """The reason for each feature left out."""
    importances: Mapping[str, float]
    """Mean size of a feature's contribution to the log-odds, largest first."""
    search: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def plan_from_json(document: Mapping[str, Any]) -> Plan:
    return Plan(**{**document, "names": tuple(document["names"]), "rounds": int(document["rounds"])})


def make_plan(
    engine: Engine,
    X: Matrix,
    names: Sequence[str],
    y: NDArray[np.float64],
    submit: NDArray[Any],
    known: NDArray[Any],
    *,
    seed: int,
    budget: Budget,
    threads: int,
) -> Plan:
    """Rows are in order of time. Features are chosen first, by a model with the initial parameters of the search."""
    latest = slice(max(0, len(y) - SEARCH_ROWS), None)
    rows, labels = X[latest], y[latest]
    leaf = min(START["min_data_in_leaf"], _leaf(len(labels)))
    start = {**START, **_FIXED, "min_data_in_leaf": leaf} if engine.name == "lightgbm" else None
    first = _trained(engine, rows, names, labels, start or {}, 100, seed=seed, threads=threads)
    gains = _importances(first, rows)
    chosen = select(rows, names, gains)
    kept = [names[place] for place in chosen.kept]
    found = search_engine(
        engine,
        rows[:, list(chosen.kept)],
        labels,
        folds(submit[latest], known[latest], count=2, first=0.6),
        budget=budget,
        seed=seed,
        space=SPACE if start else None,
        start=start,
        monotone=monotone(kept),
        rounds=ROUNDS,
        threads=threads,
    )
    order = sorted(chosen.kept, key=lambda place: (-gains[place], names[place]))
    return Plan(
        names=tuple(kept),
        parameters={**found.best.parameters, **(_FIXED if start else {})},
        rounds=max(found.best.rounds or 0, FEWEST_ROUNDS),
        dropped=chosen.dropped,
        importances={names[place]: round(float(gains[place]), 6) for place in order},
        search=found.to_json(),
    )


def fitted(
    plan: Plan, engine: Engine, X: Matrix, y: NDArray[np.float64], *, seed: int, threads: int
) -> Booster:
    """Fit a model by this plan; the columns of X are the plan's."""
    return _trained(engine, X, plan.names, y, plan.parameters, plan.rounds, seed=seed, threads=threads)


def _trained(
    engine: Engine,
    X: Matrix,
    names: Sequence[str],
    y: NDArray[np.float64],
    parameters: Mapping[str, Any],
    rounds: int,
    *,
    seed: int,
    threads: int,
) -> Booster:
    share, leaf = parameters.get("bagging_fraction"), parameters.get("min_data_in_leaf")
    if share is not None:
        parameters = {**parameters, "bagging_fraction": min(share, TREE_ROWS / len(y))}
    if leaf is not None:  # on a few hundred rows, leaves of fifty separate nothing
        parameters = {**parameters, "min_data_in_leaf": min(leaf, _leaf(len(y)))}
    return engine.train(
        X, y, parameters=parameters, seed=seed, threads=threads, monotone=monotone(names), rounds=rounds
    )


def _leaf(rows: int) -> int:
    return max(5, rows // LEAVES)


def _importances(model: Booster, X: Matrix) -> NDArray[np.float64]:
    sample = X[:: max(1, len(X) // _IMPORTANT_ROWS)]
    means: NDArray[np.float64] = np.abs(model.contributions(sample)[:, :-1]).mean(axis=0)
    return means
