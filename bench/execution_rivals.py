"""The other models of RoWD's Tables 3 and 5: KNN, SVC, logistic regression and two baselines.

All use scikit-learn's defaults, on features that are standardized and mean-imputed with the statistics of the training rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.models.engines import Floats, Matrix

__all__ = ["RIVALS", "rival"]


def rival(name: str, X: Matrix, y: Floats, asked: Matrix) -> Floats:
    """Train the model and predict the asked rows: probabilities, or classes as 0 and 1."""
    if not X.shape[1]:
        return _most_frequent(X, y, asked)
    X, asked = _scaled(X, asked)
    return RIVALS[name](X, y, asked)


def _scaled(X: Matrix, asked: Matrix) -> tuple[Matrix, Matrix]:
    middle, spread = np.nanmean(X, axis=0, dtype=np.float64), np.nanstd(X, axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    return tuple(np.nan_to_num((rows - middle) / spread).astype(np.float32) for rows in (X, asked))


def _fitted(model: Any, X: Matrix, y: Floats, asked: Matrix) -> Floats:
    return np.asarray(model.fit(X, y).predict(asked), dtype=np.float64)


def _neighbours(X: Matrix, y: Floats, asked: Matrix) -> Floats:
    from sklearn.neighbors import KNeighborsClassifier  # type: ignore[import-untyped]  # it ships no types

    return _fitted(KNeighborsClassifier(n_neighbors=min(5, len(X))), X, y, asked)


def _support_vectors(X: Matrix, y: Floats, asked: Matrix) -> Floats:
    from sklearn.svm import SVC  # type: ignore[import-untyped]  # it ships no types

    return _fitted(SVC(), X, y, asked)


def _logistic(X: Matrix, y: Floats, asked: Matrix) -> Floats:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]  # it ships no types

    return _fitted(LogisticRegression(max_iter=1000), X, y, asked)


def _most_frequent(_: Matrix, y: Floats, asked: Matrix) -> Floats:
    return np.full(len(asked), float(y.mean() > 0.5))


def _most_similar(X: Matrix, y: Floats, asked: Matrix) -> Floats:
    """The class of the job with the highest cosine similarity. (The paper writes "lowest"; it must mean the distance.)"""
    train, rows = _directions(X), _directions(asked)
    nearest = [np.argmax(rows[at : at + 1000] @ train.T, axis=1) for at in range(0, len(rows), 1000)]
    return np.asarray(y[np.concatenate(nearest)])


def _directions(X: Matrix) -> NDArray[np.float32]:
    return np.asarray(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12))


RIVALS: Mapping[str, Callable[[Matrix, Floats, Matrix], Floats]] = {
    "KNN": _neighbours,
    "SVC": _support_vectors,
    "LR": _logistic,
    "MFREQ": _most_frequent,
    "MSIMILAR": _most_similar,
}
