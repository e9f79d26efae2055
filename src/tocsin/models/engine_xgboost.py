"""The XGBoost engine, used by the published recipe; needs the extra `engines`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tocsin.core.errors import ModelError
from tocsin.models.engines import PATIENCE, Engine, Floats, Matrix, Task, import_extra
from tocsin.models.files import MALFORMED, read_json
from tocsin.models.space import Real, Space, Whole
from tocsin.models.tree_json import checked_xgboost

__all__ = ["XGBOOST"]

_SPACE: Space = {
    "max_depth": Whole(3, 12),
    "eta": Real(0.02, 0.3, log=True),
    "min_child_weight": Real(0.5, 50.0, log=True),
    "subsample": Real(0.5, 1.0),
    "colsample_bytree": Real(0.4, 1.0),
    "lambda": Real(1e-3, 30.0, log=True),
    "gamma": Real(1e-4, 5.0, log=True),
}


@dataclass(frozen=True, slots=True)
class _XGBoost:
    booster: Any

    @property
    def rounds(self) -> int:
        return int(self.booster.num_boosted_rounds())

    def predict(self, X: Matrix) -> Floats:
        return self._predict(X)

    def contributions(self, X: Matrix) -> Floats:
        return self._predict(X, pred_contribs=True)

    def save(self, path: Path) -> None:
        path.write_bytes(self.booster.save_raw("json"))

    def _predict(self, X: Matrix, **how: Any) -> Floats:
        if X.ndim != 2 or X.shape[1] != self.booster.num_features():
            raise ModelError(f"the model has {self.booster.num_features()} features; the rows are {X.shape}")
        if not len(X):
            return np.empty((0, X.shape[1] + 1) if how else 0)
        xgboost = import_extra("xgboost")
        matrix = xgboost.DMatrix(X, nthread=1)
        try:
            return np.asarray(self.booster.predict(matrix, **how), dtype=np.float64)
        except xgboost.core.XGBoostError as error:
            raise ModelError(f"XGBoost cannot predict with this model: {str(error)[:200]}") from None


def _train(task: Task) -> _XGBoost:
    xgboost = import_extra("xgboost")
    parameters = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        **task.parameters,
        "seed": task.seed,
        "nthread": task.threads,
        "verbosity": 0,
    }
    if task.monotone is not None and any(task.monotone):
        parameters["monotone_constraints"] = tuple(task.monotone)
    rows = xgboost.DMatrix(task.X, task.y, weight=task.weight, nthread=task.threads)
    how: dict[str, Any] = {}
    if task.valid is not None:
        later = xgboost.DMatrix(task.valid[0], task.valid[1], nthread=task.threads)
        how = {"evals": [(later, "later")], "early_stopping_rounds": PATIENCE}
    try:
        booster = xgboost.train(parameters, rows, task.rounds, verbose_eval=False, **how)
    except xgboost.core.XGBoostError as error:
        raise ModelError(f"XGBoost cannot train: {str(error)[:200]}") from None
    if how:
        booster = booster[: booster.best_iteration + 1]
    return _XGBoost(booster)


def _load(path: Path, threads: int) -> _XGBoost:
    xgboost = import_extra("xgboost")
    try:
        text = checked_xgboost(read_json(path))
        return _XGBoost(xgboost.Booster({"nthread": threads}, model_file=bytearray(text)))
    except (xgboost.core.XGBoostError, *MALFORMED) as error:
        raise ModelError(f"{path} is not an XGBoost model: {str(error)[:200]}") from None


XGBOOST = Engine("xgboost", ".json", _SPACE, _train, _load)
