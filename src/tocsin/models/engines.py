"""One small interface over the engines of boosted and bagged trees; each is imported when it is asked for."""

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
    """A trained model. The same rows give the same bits, before saving and after loading."""

    @property
    def rounds(self) -> int:
        """How many rounds it has after early stopping."""
        ...

    def predict(self, X: Matrix) -> Floats:
        """The probability of each row; for other objectives what the engine gives."""
        ...

    def contributions(self, X: Matrix) -> Floats:
        """Exact TreeSHAP values in log-odds: one column a feature and the base last; a row sums to its log-odds."""
        ...

    def save(self, path: Path) -> None:
        """Write the native text or JSON of the engine."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an engine is asked to train, checked: rows, labels, weights, and how."""

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
    """An engine by name. `parameters` are in its own words; the default objective is binary."""

    name: str
    suffix: str
    space: Space
    """What a search tries by default."""
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
        """Train on rows whose gaps are NaN. With `valid`, training stops when these later rows gain no more.

        `monotone` has 1, 0 or -1 for each feature: whether the probability may only rise or only fall with it.
        """
        labels = _checked(X, y)
        if np.unique(labels).size < 2:
            raise ModelError(
                f"all {len(labels):,} rows of the training have the same outcome; "
                "a model needs rows of both: take a longer window or another target"
            )
        if monotone is not None and len(monotone) != X.shape[1]:
            raise ModelError(f"{len(monotone)} monotone constraints were given for {X.shape[1]} features")
        if weight is not None and (
            len(weight) != len(X) or not np.isfinite(weight).all() or (weight < 0).any()
        ):
            raise ModelError("each row of the training needs one weight that is not negative")
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
        """What `save` wrote. Check hashes before: the parsers of engines run no code, but trust their input."""
        return self._load(path, threads)


ENGINES: Mapping[str, str] = {
    "lightgbm": "tocsin.models.engine_lightgbm",
    "bagged": "tocsin.models.engine_lightgbm",
    "xgboost": "tocsin.models.engine_xgboost",
    "catboost": "tocsin.models.engine_catboost",
}
"""The module of each engine, in which it stands under its name in capitals."""


def engine(name: str) -> Engine:
    """An engine by its name; the library behind it is loaded when it trains or loads."""
    if name not in ENGINES:
        raise ModelError(f'"{name}" is no engine; there are {", ".join(ENGINES)}')
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
        raise ModelError(f"features must be a table of float32, not {X.dtype} with {X.ndim} dimensions")
    if len(X) != len(y) or not len(y):
        raise ModelError(f"{len(X):,} rows of features and {len(y):,} outcomes were given; both must match")
    labels = np.asarray(y, dtype=np.float64)
    if not np.isfinite(labels).all():
        raise ModelError(
            "an outcome of the training is not a number; leave out rows whose outcome is unknown"
        )
    return labels
