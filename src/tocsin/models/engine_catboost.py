"""The CatBoost engine; needs the extra `engines`."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tocsin.core.errors import ModelError
from tocsin.models.engines import PATIENCE, Engine, Floats, Matrix, Task, import_extra
from tocsin.models.files import MALFORMED, read_json
from tocsin.models.space import Real, Space, Whole
from tocsin.models.tree_json import checked_catboost

__all__ = ["CATBOOST"]

_SPACE: Space = {
    "depth": Whole(4, 9),
    "learning_rate": Real(0.03, 0.3, log=True),
    "l2_leaf_reg": Real(0.5, 30.0, log=True),
    "random_strength": Real(0.1, 10.0, log=True),
    "rsm": Real(0.4, 1.0),
}


@dataclass(frozen=True, slots=True)
class _CatBoost:
    booster: Any
    threads: int
    text: bytes
    """The original JSON; CatBoost would round the last bit of some values when it writes it again."""

    @property
    def rounds(self) -> int:
        return int(self.booster.tree_count_)

    def predict(self, X: Matrix) -> Floats:
        self._check(X)
        if not len(X):
            return np.empty(0)
        # The log-odds: a loaded model does not know its objective.
        raw = self.booster.predict(X, prediction_type="RawFormulaVal", thread_count=self.threads)
        return 1.0 / (1.0 + np.exp(-np.asarray(raw, dtype=np.float64)))

    def contributions(self, X: Matrix) -> Floats:
        self._check(X)
        if not len(X):
            return np.empty((0, X.shape[1] + 1))
        rows = import_extra("catboost").Pool(X)
        values = self.booster.get_feature_importance(rows, type="ShapValues", thread_count=self.threads)
        return np.asarray(values, dtype=np.float64)

    def save(self, path: Path) -> None:
        path.write_bytes(self.text)

    def _check(self, X: Matrix) -> None:
        count = len(self.booster.feature_names_)
        if X.ndim != 2 or X.shape[1] != count:
            raise ModelError(f"the model has {count} features; the rows are {X.shape}")


def _train(task: Task) -> _CatBoost:
    catboost = import_extra("catboost")
    parameters = {
        "loss_function": "Logloss",
        **task.parameters,
        "iterations": task.rounds,
        "random_seed": task.seed,
        "thread_count": task.threads,
        "logging_level": "Silent",
        "allow_writing_files": False,
    }
    if task.monotone is not None and any(task.monotone):
        parameters["monotone_constraints"] = list(task.monotone)
    how: dict[str, Any] = {}
    if task.valid is not None:
        how = {"eval_set": catboost.Pool(*task.valid), "early_stopping_rounds": PATIENCE}
    booster = catboost.CatBoost(parameters)
    try:
        booster.fit(catboost.Pool(task.X, task.y, weight=task.weight), **how)
    except catboost.CatBoostError as error:
        raise ModelError(f"CatBoost cannot train: {str(error)[:200]}") from None
    # Reloaded, so that predictions are the same as after a later load, to the last bit.
    with TemporaryDirectory(prefix="tocsin-") as folder:
        path = Path(folder) / "model.json"
        booster.save_model(str(path), format="json")
        return _load(path, task.threads)


def _load(path: Path, threads: int) -> _CatBoost:
    catboost = import_extra("catboost")
    try:
        text = checked_catboost(read_json(path))
        with TemporaryDirectory(prefix="tocsin-") as folder:  # CatBoost reads JSON from files only
            checked = Path(folder) / "model.json"
            checked.write_bytes(text)
            booster = catboost.CatBoost().load_model(str(checked), format="json")
        model = _CatBoost(booster, threads, text)
        if not model.rounds:
            raise ValueError("it has no tree")
        return model
    except (catboost.CatBoostError, *MALFORMED) as error:
        raise ModelError(f"{path} is not a CatBoost model: {str(error)[:200]}") from None


CATBOOST = Engine("catboost", ".json", _SPACE, _train, _load)
