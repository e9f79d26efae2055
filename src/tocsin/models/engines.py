"""One interface to engines of boosted and bagged trees; each library is imported when it is first used."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.models.space import Space

__all__ = ["ENGINES", "Booster", "Engine", "Floats", "Matrix", "Task", "engine", "import_extra"]

Matrix = NDArray[np.float32]
Floats = NDArray[np.float64]

PATIENCE = 30
"""Rounds without a better validation score after which training stops."""


class Booster(Protocol):
    """A trained model. The same rows give identical results, before saving and after loading."""

    @property
    def rounds(self) -> int:
        """Rounds after early stopping."""
        ...

    def predict(self, X: Matrix) -> Floats:
        """The probability of each row; for other objectives the engine's raw prediction."""
        ...

    def contributions(self, X: Matrix) -> Floats:
        """Exact TreeSHAP values in log-odds: one column per feature, the base last; each row sums to its log-odds."""
        ...

    def save(self, path: Path) -> None:
        """Write the engine's native text or JSON."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Validated input of a training: rows, labels, weights and parameters."""

    X: Matrix
    y: Floats
    weight: Floats | None
    parameters: Mapping[str, Any]
    seed: int
    threads: int
    monotone: Sequence[int] | None
    rounds: int
    valid: tuple[Matrix, Floats] | None


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine. `parameters` have the library's own names; the default objective is binary."""

    name: str
    suffix: str
    space: Space
    """Default search space."""
    _train: Callable[[Task], Booster]
    _load: Callable[[Path, int], Booster]

    def train(
        self,
        X: Matrix,
        y: NDArray[Any],
        *,
        weight: NDArray[Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        seed: int = 0,
        threads: int = 1,
        monotone: Sequence[int] | None = None,
        rounds: int = 300,
        valid: tuple[Matrix, NDArray[Any]] | None = None,
    ) -> Booster:
        """Train on rows in which missing values are NaN. With `valid`, stop early by the score on these later rows.

        `monotone` has 1, 0 or -1 for each feature: whether the probability may only rise or only fall with it.
        """
        labels = _checked(X, y)
        if np.unique(labels).size < 2:
            raise ModelError(
                f"all {len(labels):,} training rows have the same outcome; "
                "a model needs both outcomes: use a longer window or another target"
            )
        if monotone is not None and len(monotone) != X.shape[1]:
            raise ModelError(f"{len(monotone)} monotone constraints for {X.shape[1]} features")
        if weight is not None and (
            len(weight) != len(X) or not np.isfinite(weight).all() or (weight < 0).any()
        ):
            raise ModelError("each training row needs one non-negative weight")
        return self._train(
            Task(
                X=X,
                y=labels,
                weight=None if weight is None else np.asarray(weight, dtype=np.float64),
                parameters=dict(parameters or {}),
                seed=seed,
                threads=threads,
                monotone=monotone,
                rounds=rounds,
                valid=None if valid is None else (valid[0], _checked(*valid)),
            )
        )

    def load(self, path: Path, *, threads: int = 1) -> Booster:
        """What `save` wrote. Verify hashes first: the engines' parsers run no code, but they trust their input."""
        return self._load(path, threads)


ENGINES: Mapping[str, str] = {
    "lightgbm": "tocsin.models.engine_lightgbm",
    "bagged": "tocsin.models.engine_lightgbm",
    "xgboost": "tocsin.models.engine_xgboost",
    "catboost": "tocsin.models.engine_catboost",
}
"""The module of each engine, which defines it under its name in capitals."""


def engine(name: str) -> Engine:
    """The engine of this name; its library is loaded when it trains or loads a model."""
    if name not in ENGINES:
        raise ModelError(f'"{name}" is not an engine; the engines are {", ".join(ENGINES)}')
    found: Engine = getattr(import_module(ENGINES[name]), name.upper())
    return found


def import_extra(library: str) -> Any:
    """A library of the extra `engines`."""
    try:
        return import_module(library)
    except ImportError:
        raise ModelError(
            f'the engine "{library}" is not installed; install it with: pip install "tocsin[engines]"'
        ) from None


def _checked(X: Matrix, y: NDArray[Any]) -> Floats:
    if X.ndim != 2 or X.dtype != np.float32:
        raise ModelError(
            f"features must be a 2-dimensional float32 array, not {X.dtype} with {X.ndim} dimensions"
        )
    if len(X) != len(y) or not len(y):
        raise ModelError(f"{len(X):,} rows of features, but {len(y):,} outcomes")
    labels = np.asarray(y, dtype=np.float64)
    if not np.isfinite(labels).all():
        raise ModelError("a training outcome is not a number; remove rows with unknown outcomes")
    return labels
