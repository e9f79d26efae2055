"""Parameter search: seeded, in memory, scored on rows later than the training rows."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.detector import Budget
from tocsin.core.errors import ModelError
from tocsin.models.engines import Engine, Matrix
from tocsin.models.metrics import measure
from tocsin.models.space import Choice, Space, Whole, space_to_json
from tocsin.models.splits import Step

if TYPE_CHECKING:
    import optuna

__all__ = ["Found", "Score", "Trial", "search", "search_engine"]

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Score:
    """The score of parameters (higher is better) and their number of rounds."""

    value: float
    rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """Parameters that were tried, and their score."""

    parameters: Parameters
    score: float
    rounds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The best trial (the first of equals) and all trials, for the card."""

    best: Trial
    trials: Sequence[Trial]
    space: Space
    seed: int

    def to_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "space": space_to_json(self.space),
            "best": asdict(self.best),
            "trials": [asdict(trial) for trial in self.trials],
        }


def search(
    evaluate: Callable[[Parameters], Score],
    space: Space,
    *,
    budget: Budget,
    seed: int,
    start: Mapping[str, Any] | None = None,
) -> Found:
    """Try `start` (default: no parameters, so the engine's defaults), then the proposals of a seeded TPE sampler.

    The result is never worse than the start. A budget in trials alone is reproducible; with a budget in seconds, the
    trial that is running when time is up is the last one.
    """
    if budget.trials < 1:
        raise ModelError(f"a search needs a budget of at least one trial, not {budget.trials}")
    began = time.monotonic()
    trials: list[Trial] = []

    def run(parameters: Parameters) -> float:
        result = evaluate(parameters)
        if not np.isfinite(result.value):
            raise ModelError(f"the parameters {parameters} have no finite score ({result.value})")
        trials.append(Trial(parameters, result.value, result.rounds))
        if budget.progress:
            budget.progress(len(trials), budget.trials)
        return result.value

    run(dict(start or {}))
    left = None if budget.seconds is None else budget.seconds - (time.monotonic() - began)
    if budget.trials > 1 and space and (left is None or left > 0):
        import optuna

        with _silent(optuna):
            sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, n_startup_trials=max(3, min(10, budget.trials // 3))
            )
            study = optuna.create_study(direction="maximize", sampler=sampler)
            study.optimize(
                lambda trial: run({name: _suggest(trial, name, space) for name in space}),
                n_trials=budget.trials - 1,
                timeout=left,
            )
    best = max(trials, key=lambda trial: trial.score)
    return Found(best=best, trials=trials, space=space, seed=seed)


def search_engine(
    engine: Engine,
    X: Matrix,
    y: NDArray[Any],
    folds: Sequence[Step],
    *,
    budget: Budget,
    seed: int,
    space: Space | None = None,
    start: Mapping[str, Any] | None = None,
    weight: NDArray[Any] | None = None,
    monotone: Sequence[int] | None = None,
    rounds: int = 500,
    threads: int = 1,
    metric: str = "average_precision",
) -> Found:
    """The parameters and rounds with the best mean `metric` over time folds; see `splits.folds`."""
    labels = np.asarray(y, dtype=np.float64)
    usable = [f for f in folds if all(np.unique(labels[rows]).size > 1 for rows in (f.train, f.test))]
    if not usable:
        raise ModelError(
            "no validation fold has jobs of both outcomes in it and before it; "
            "use a longer window or another target"
        )
    sign = -1.0 if metric in ("brier", "calibration_error") else 1.0

    def evaluate(parameters: Parameters) -> Score:
        scores, wanted = [], []
        for fold in usable:
            later = X[fold.test]
            model = engine.train(
                X[fold.train],
                labels[fold.train],
                weight=None if weight is None else weight[fold.train],
                parameters=parameters,
                seed=seed,
                threads=threads,
                monotone=monotone,
                rounds=rounds,
                valid=(later, labels[fold.test]),
            )
            scores.append(sign * measure(metric, labels[fold.test], model.predict(later)))
            wanted.append(model.rounds)
        return Score(float(np.mean(scores)), int(np.median(wanted)))

    return search(evaluate, engine.space if space is None else space, budget=budget, seed=seed, start=start)


def _suggest(trial: "optuna.Trial", name: str, space: Space) -> Any:
    values = space[name]
    if isinstance(values, Choice):
        return trial.suggest_categorical(name, values.values)
    if isinstance(values, Whole):
        return trial.suggest_int(name, values.low, values.high, log=values.log)
    return trial.suggest_float(name, values.low, values.high, log=values.log)


@contextmanager
def _silent(library: Any) -> Iterator[None]:
    before = library.logging.get_verbosity()
    library.logging.set_verbosity(library.logging.ERROR)
    try:
        yield
    finally:
        library.logging.set_verbosity(before)
