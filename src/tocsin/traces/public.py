"""Series with labelled anomalies from `.npz` files, and how well methods find them, point by point."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import SourceError
from tocsin.traces.linear import WINDOW, LinearAutoencoder

__all__ = ["METHODS", "LabelledSeries", "figures", "read_folder", "read_series"]

_MOST_BYTES = 4 << 30
_FEWEST = 100  # training points
_LARGEST = 1e30
_NAMES = ("train", "test", "test_label")


@dataclass(frozen=True, slots=True)
class LabelledSeries:
    """A training series, a later one, and which of its points are anomalous."""

    name: str
    train: NDArray[Any]
    test: NDArray[Any]
    anomalous: NDArray[np.bool_]


def read_folder(folder: Path) -> Iterator[LabelledSeries]:
    """The series of all `.npz` files in a folder, in order of their names."""
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise SourceError(f"{folder} has no .npz file; each must hold the arrays {', '.join(_NAMES)}")
    return map(read_series, files)


def read_series(path: Path) -> LabelledSeries:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > _MOST_BYTES:
            raise SourceError(f"{path}: {size:,} bytes when unpacked are more than {_MOST_BYTES:,}")
        with np.load(path, allow_pickle=False) as arrays:
            missing = [name for name in _NAMES if name not in arrays]
            if missing:
                raise SourceError(f"{path} has no array {missing[0]}; it needs {', '.join(_NAMES)}")
            train, test, label = (np.asarray(arrays[name]) for name in _NAMES)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, MemoryError, NotImplementedError) as error:
        raise SourceError(f"{path} is not an .npz file of plain arrays: {error}") from None
    label = label.reshape(-1)
    train, test = (array[:, None] if array.ndim == 1 else array for array in (train, test))
    numbers = all(array.dtype.kind in "fiub" for array in (train, test, label))
    if not numbers or train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1]:
        shapes = f"train {train.shape} {train.dtype}, test {test.shape} {test.dtype}"
        raise SourceError(
            f"{path}: train and test must be numbers of points × the same channels, not {shapes}"
        )
    if len(label) != len(test):
        raise SourceError(f"{path}: {len(test):,} points to test, but {len(label):,} labels")
    if len(train) < _FEWEST or not len(test) or not train.shape[1]:
        raise SourceError(
            f"{path}: {len(train):,} points to learn from and {len(test):,} to test of {train.shape[1]} channels are too few; "
            f"at least {_FEWEST} to learn from, one to test and one channel are needed"
        )
    return LabelledSeries(path.stem, _known(train), _known(test), label.astype(np.float64) > 0.5)


def _known(values: NDArray[Any]) -> NDArray[np.float64]:
    """Non-finite values are gaps; extreme ones are clipped, so that no method overflows."""
    numbers = values.astype(np.float64)
    return np.clip(np.where(np.isfinite(numbers), numbers, np.nan), -_LARGEST, _LARGEST)


def figures(anomalous: NDArray[np.bool_], scores: NDArray[Any]) -> dict[str, float | None]:
    """Area under the precision–recall curve and the best F1 of any threshold; None without an anomalous point."""
    if not anomalous.any():
        return {"auc_pr": None, "best_f1": None}
    from sklearn.metrics import (  # type: ignore[import-untyped]  # it ships no types
        average_precision_score,
        precision_recall_curve,
    )

    precision, recall, _ = precision_recall_curve(anomalous, scores)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
    return {
        "auc_pr": round(float(average_precision_score(anomalous, scores)), 4),
        "best_f1": round(float(f1.max()), 4),
    }


def _tocsin(series: LabelledSeries) -> NDArray[Any]:
    return LinearAutoencoder.fit(series.train, min(WINDOW, len(series.test))).score(series.test)


def _standardised(series: LabelledSeries) -> tuple[NDArray[Any], NDArray[Any]]:
    train, test = (np.nan_to_num(part.astype(np.float64)) for part in (series.train, series.test))
    deviation = train.std(axis=0)
    scale = np.where(deviation > 1e-6, deviation, 1.0)
    return (train - train.mean(axis=0)) / scale, (test - train.mean(axis=0)) / scale


def _pca(series: LabelledSeries) -> NDArray[Any]:
    """Reconstruction error of single points, 90 % of the variance kept."""
    from sklearn.decomposition import PCA  # type: ignore[import-untyped]

    train, test = _standardised(series)
    if not train.any():  # no channel ever changed: there is nothing to project onto
        return np.asarray((test**2).mean(axis=1))
    model = PCA(0.9, svd_solver="full").fit(train)
    return np.asarray(((test - model.inverse_transform(model.transform(test))) ** 2).mean(axis=1))


def _iforest(series: LabelledSeries) -> NDArray[Any]:
    """Isolation forest of single points."""
    from sklearn.ensemble import IsolationForest  # type: ignore[import-untyped]

    train, test = _standardised(series)
    return np.asarray(-IsolationForest(n_estimators=200, random_state=0).fit(train).score_samples(test))


METHODS: Mapping[str, Callable[[LabelledSeries], NDArray[Any]]] = {
    "tocsin": _tocsin,
    "pca": _pca,
    "iforest": _iforest,
}
"""Scores of the test points by each method; higher is more anomalous."""
