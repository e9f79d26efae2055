"""LightGBM's C library for predictions: its Python package takes 0.2 s to import and longer for one row."""

import os
from ctypes import CDLL, addressof, c_char_p, c_int, c_int32, c_int64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np

from tocsin.core.errors import ModelError
from tocsin.models.engines import Floats, Matrix

__all__ = ["LightGBMError", "Predictor", "limit_spinning"]

# The signatures and numbers of include/LightGBM/c_api.h.
_SIGNATURES = {
    "LGBM_BoosterLoadModelFromString": [c_char_p, c_void_p, c_void_p],
    "LGBM_BoosterGetNumFeature": [c_void_p, c_void_p],
    "LGBM_BoosterPredictForMat": [c_void_p, c_void_p, c_int, c_int32, c_int32, *[c_int] * 4, c_char_p, c_void_p, c_void_p],
    "LGBM_BoosterPredictForMatSingleRowFastInit": [c_void_p, *[c_int] * 4, c_int32, c_char_p, c_void_p],
    "LGBM_BoosterPredictForMatSingleRowFast": [c_void_p] * 4,
    "LGBM_FastConfigFree": [c_void_p],
    "LGBM_BoosterFree": [c_void_p],
}  # fmt: skip
_FLOAT32, _ROW_MAJOR, _ALL = 0, 1, -1
_PROBABILITY, _CONTRIBUTIONS = 0, 3


class LightGBMError(Exception):
    """An error reported by LightGBM."""


class Predictor:
    """A loaded model; threads may share it."""

    def __init__(self, text: str, *, threads: int) -> None:
        self._library, self._booster, self._one_row = _library(), c_void_p(), c_void_p()
        self._options = f"num_threads={threads} verbosity=-1".encode()
        rounds, features = c_int(), c_int()
        self._library.LGBM_BoosterLoadModelFromString(
            text.encode(), addressof(rounds), addressof(self._booster)
        )
        self._library.LGBM_BoosterGetNumFeature(self._booster, addressof(features))
        self.rounds, self.features = rounds.value, features.value
        self._library.LGBM_BoosterPredictForMatSingleRowFastInit(
            self._booster, _PROBABILITY, 0, _ALL, _FLOAT32, self.features, self._options,
            addressof(self._one_row),
        )  # fmt: skip

    def predict(self, X: Matrix) -> Floats:
        if len(X) != 1:
            return self._predict(X, _PROBABILITY, np.empty(len(X)))
        row, found, length = np.ascontiguousarray(X, np.float32), np.empty(1), c_int64()
        self._library.LGBM_BoosterPredictForMatSingleRowFast(
            self._one_row, row.ctypes.data, addressof(length), found.ctypes.data
        )
        return found

    def contributions(self, X: Matrix) -> Floats:
        return self._predict(X, _CONTRIBUTIONS, np.empty((len(X), self.features + 1)))

    def _predict(self, X: Matrix, kind: int, found: Floats) -> Floats:
        rows, length = np.ascontiguousarray(X, np.float32), c_int64()
        self._library.LGBM_BoosterPredictForMat(
            self._booster, rows.ctypes.data, _FLOAT32, *rows.shape, _ROW_MAJOR, kind, 0, _ALL,
            self._options, addressof(length), found.ctypes.data,
        )  # fmt: skip
        return found

    def __del__(self) -> None:
        if self._one_row:
            self._library.LGBM_FastConfigFree(self._one_row)
        if self._booster:
            self._library.LGBM_BoosterFree(self._booster)


def limit_spinning() -> None:
    """Keep LightGBM's threads from busy-waiting: on a busy machine, that made a training ten times slower.

    (Two threads on two cores with a load of 5: 4.0 s by default, 0.8 s with this, 1.2 s with one thread.)
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # read once, when the library is loaded


@cache
def _library() -> CDLL:
    """The file that the Python package would load; of the package, only the module that finds it is run."""
    limit_spinning()
    package = find_spec("lightgbm")
    if package is None or package.origin is None:
        raise ModelError("LightGBM is not installed; install tocsin again")
    try:
        library: CDLL = run_path(str(Path(package.origin).with_name("libpath.py")))["_LIB"]
    except OSError as error:
        raise ModelError(
            f"LightGBM cannot be loaded ({error}); where libgomp is missing: apt-get install libgomp1"
        ) from None
    library.LGBM_GetLastError.restype = c_char_p
    for name, types in _SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.errcheck = types, _checked
    return library


def _checked(result: int, _function: Any, _arguments: Any) -> None:
    if result:
        raise LightGBMError(_library().LGBM_GetLastError().decode("utf-8", "replace"))
