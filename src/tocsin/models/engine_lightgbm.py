"""LightGBM: the default engine, and bagged trees (its random forest) as an alternative."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.core.errors import ModelError
from tocsin.models.engines import PATIENCE, Engine, Floats, Matrix, Task
from tocsin.models.files import MOST_BYTES, read_file
from tocsin.models.lightgbm_library import LightGBMError, Predictor, limit_spinning
from tocsin.models.lightgbm_text import checked_text
from tocsin.models.space import Real, Space, Whole

__all__ = ["BAGGED", "LIGHTGBM"]

_REPEATABLE: Mapping[str, Any] = {"deterministic": True, "force_row_wise": True, "verbosity": -1}

_BAGS: Mapping[str, Any] = {"num_leaves": 255, "bagging_fraction": 0.632, "feature_fraction": 0.6}

_SPACE: Space = {
    "num_leaves": Whole(8, 255, log=True),
    "learning_rate": Real(0.02, 0.2, log=True),
    "min_data_in_leaf": Whole(5, 300, log=True),
    "feature_fraction": Real(0.4, 1.0),
    "bagging_fraction": Real(0.5, 1.0),
    "lambda_l2": Real(1e-3, 30.0, log=True),
    "min_gain_to_split": Real(1e-4, 1.0, log=True),
}
_BAGGED_SPACE: Space = {
    "num_leaves": Whole(32, 1023, log=True),
    "min_data_in_leaf": Whole(2, 100, log=True),
    "feature_fraction": Real(0.2, 1.0),
    "bagging_fraction": Real(0.4, 0.9),
}


@dataclass(frozen=True, slots=True)
class _LightGBM:
    text: str
    """The text as saved."""
    predictor: Predictor
    averages: bool
    """Whether it is a forest, which averages its trees; LightGBM does not divide their contributions."""

    @property
    def rounds(self) -> int:
        return self.predictor.rounds

    def predict(self, X: Matrix) -> Floats:
        return self.predictor.predict(self._checked(X)) if len(X) else np.empty(0)

    def contributions(self, X: Matrix) -> Floats:
        values = self.predictor.contributions(self._checked(X)) if len(X) else np.empty((0, X.shape[1] + 1))
        return values / self.rounds if self.averages else values

    def save(self, path: Path) -> None:
        path.write_text(self.text, "ascii")

    def _checked(self, X: Matrix) -> Matrix:
        if X.ndim != 2 or X.shape[1] != self.predictor.features:
            raise ModelError(f"the model has {self.predictor.features} features; the rows are {X.shape}")
        return X


def _package() -> Any:
    """LightGBM's Python package, which only training needs."""
    limit_spinning()
    try:
        with _absent("sklearn", "pandas"):
            import lightgbm
    except OSError as error:  # a shared library is missing
        raise ModelError(
            f"LightGBM cannot be loaded ({error}); where libgomp is missing: apt-get install libgomp1"
        ) from None
    return lightgbm


@contextmanager
def _absent(*names: str) -> Iterator[None]:
    """Make modules that are not imported yet appear not installed.

    LightGBM imports both for interfaces that are not used here: 1.7 of the 1.9 s of its import.
    """
    hidden = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(hidden)  # type: ignore[arg-type]  # None is how Python itself marks it
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _train(task: Task, fixed: Mapping[str, Any]) -> _LightGBM:
    lightgbm = _package()
    parameters = {
        "objective": "binary",
        "bagging_freq": 1,
        **(_BAGS if fixed else {}),
        **task.parameters,
        **fixed,
        **_REPEATABLE,
        "seed": task.seed,
        "num_threads": task.threads,
    }
    if task.monotone is not None and any(task.monotone):
        parameters["monotone_constraints"] = list(task.monotone)
    rows = lightgbm.Dataset(task.X, task.y, weight=task.weight, params=parameters)
    later: list[Any] = []
    stop: list[Callable[..., Any]] = []
    # No early stopping for a forest: more trees never overfit.
    if task.valid is not None and not fixed:
        later = [lightgbm.Dataset(task.valid[0], task.valid[1], reference=rows, params=parameters)]
        stop = [lightgbm.early_stopping(PATIENCE, first_metric_only=True, verbose=False)]
    try:
        booster = lightgbm.train(parameters, rows, task.rounds, valid_sets=later, callbacks=stop)
    except lightgbm.basic.LightGBMError as error:
        raise ModelError(f"LightGBM cannot train: {error}") from None
    best = booster.best_iteration if stop else 0
    return _loaded(booster.model_to_string(num_iteration=best or -1), task.threads)


def _load(path: Path, threads: int) -> _LightGBM:
    try:
        text = read_file(path, most=MOST_BYTES).decode("ascii")
        return _loaded(text, threads, checked_text(text, str(path)))
    except (LightGBMError, ValueError) as error:
        raise ModelError(f"{path} is not a LightGBM model: {str(error)[:200]}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror})") from None


def _loaded(text: str, threads: int, checked: str | None = None) -> _LightGBM:
    averages = "\naverage_output\n" in text.partition("\nTree=")[0]
    return _LightGBM(text, Predictor(checked or text, threads=threads), averages)


LIGHTGBM = Engine("lightgbm", ".txt", _SPACE, lambda task: _train(task, {}), _load)
BAGGED = Engine("bagged", ".txt", _BAGGED_SPACE, lambda task: _train(task, {"boosting": "rf"}), _load)
