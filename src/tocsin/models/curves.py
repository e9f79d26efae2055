"""The curves of a set of predictions, as data of bounded size and as charts."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.charts.curves import curve_charts
from tocsin.charts.render import write_charts
from tocsin.core.errors import ModelError
from tocsin.models.cards import Card
from tocsin.models.files import MALFORMED, read_json
from tocsin.models.metrics import BINS, METRICS, Sorted, calibration_error, measure

__all__ = ["FILE", "MOST_POINTS", "curves", "draw_curves"]

FILE = "curves.json"
MOST_POINTS = 200
_CONFIDENCE_BINS = 20
_Z = 1.96  # 95 % interval
Floats = NDArray[np.float64]


def curves(y: NDArray[Any], p: NDArray[Any], *, threshold: float) -> dict[str, Any]:
    """Precision and recall, ROC, scores of both classes and calibration, as lists that JSON can hold.

    A curve that does not exist (one class only, no rows) is an empty list with a `reason`.
    """
    rows = Sorted(y, p)
    hits, alarms = np.cumsum(rows.positive), np.cumsum(rows.total)
    failing = float(hits[-1]) if len(hits) else 0.0
    good = float(alarms[-1]) - failing if len(hits) else 0.0
    above = int(np.searchsorted(-rows.p, -threshold, side="right"))
    found, called = (float(hits[above - 1]), float(alarms[above - 1])) if above else (0.0, 0.0)
    return {
        "rows": int(failing + good),
        "positive": int(failing),
        "threshold": float(threshold),
        "at_threshold": {
            "alarms": int(called),
            "precision": found / called if called else None,
            "recall": found / failing if failing else None,
            "false_positive_rate": (called - found) / good if good else None,
        },
        "pr": _pr(rows, hits, alarms, failing) | _area("average_precision", y, p),
        "roc": _roc(rows, hits, alarms, failing, good) | _area("auc", y, p),
        "confidence": _confidence(rows),
        "calibration": _calibration(rows) | {"error": calibration_error(y, p) if len(hits) else None},
    }


def draw_curves(model: Path, card: Card, folder: Path) -> list[Path]:
    """Draw the curves in a model's `curves.json` as SVG files in `folder`."""
    if not (model / FILE).exists():
        raise ModelError(f"{card.detector} {card.version} keeps no {FILE}, so there is nothing to draw")
    try:
        found = read_json(model / FILE)
        split = f"; {card.figures[0].split}" if card.figures else ""
        charts = curve_charts(found, f"{card.target} at {card.stage}{split}")
    except MALFORMED as error:
        raise ModelError(f"{model / FILE} cannot be drawn ({str(error)[:100]}); train again") from None
    return write_charts(folder, charts)


def _pr(rows: Sorted, hits: Floats, alarms: Floats, failing: float) -> dict[str, Any]:
    if not failing:
        return {"recall": [], "precision": [], "threshold": []}
    recall, precision = hits / failing, hits / alarms
    # The first point repeats the first precision at recall 0, where there are no alarms.
    recall, precision = np.r_[0.0, recall], np.r_[precision[0], precision]
    kept = _thinned(recall, precision)
    return {
        "recall": _list(recall[kept]),
        "precision": _list(precision[kept]),
        "threshold": _list(np.r_[rows.p[0], rows.p][kept]),
    }


def _roc(rows: Sorted, hits: Floats, alarms: Floats, failing: float, good: float) -> dict[str, Any]:
    if not failing or not good:
        return {"false_positive_rate": [], "recall": [], "threshold": []}
    wrong, recall = np.r_[0.0, (alarms - hits) / good], np.r_[0.0, hits / failing]
    kept = _thinned(wrong, recall)
    return {
        "false_positive_rate": _list(wrong[kept]),
        "recall": _list(recall[kept]),
        "threshold": _list(np.r_[rows.p[0], rows.p][kept]),
    }


def _confidence(rows: Sorted) -> dict[str, Any]:
    edges = np.linspace(0, 1, _CONFIDENCE_BINS + 1)
    place = np.minimum((rows.p * _CONFIDENCE_BINS).astype(np.int64), _CONFIDENCE_BINS - 1)
    positive = np.bincount(place, weights=rows.positive, minlength=_CONFIDENCE_BINS)
    negative = np.bincount(place, weights=rows.total - rows.positive, minlength=_CONFIDENCE_BINS)
    return {
        "edges": _list(edges),
        "positive": positive.astype(int).tolist(),
        "negative": negative.astype(int).tolist(),
    }


def _calibration(rows: Sorted) -> dict[str, Any]:
    """Bins of equal mass, with equal probabilities in one bin, as for the calibration error; Wilson's interval."""
    empty: dict[str, Any] = {name: [] for name in ("predicted", "observed", "low", "high", "rows")}
    if not len(rows.p):
        return empty
    middle = np.cumsum(rows.total) - rows.total / 2
    place = np.minimum((middle / rows.total.sum() * BINS).astype(np.int64), BINS - 1)
    total = np.bincount(place, weights=rows.total)
    used = total > 0
    total = total[used]
    predicted = np.bincount(place, weights=rows.total * rows.p)[used] / total
    observed = np.bincount(place, weights=rows.positive)[used] / total
    centre = (observed + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    half = _Z * np.sqrt(observed * (1 - observed) / total + _Z**2 / (4 * total**2)) / (1 + _Z**2 / total)
    order = np.argsort(predicted, kind="stable")
    columns = (predicted, observed, np.maximum(centre - half, 0), np.minimum(centre + half, 1), total)
    return {name: _list(column[order]) for name, column in zip(empty, columns, strict=True)}


def _area(name: str, y: NDArray[Any], p: NDArray[Any]) -> dict[str, Any]:
    value = measure(name, y, p)
    return {name: None, "reason": METRICS[name]} if np.isnan(value) else {name: value}


def _thinned(x: Floats, y: Floats) -> NDArray[np.int64]:
    """The indices of at most MOST_POINTS points of a curve with rising x: most evenly in x, the rest along the curve."""
    if len(x) <= MOST_POINTS:
        return np.arange(len(x))
    way = np.r_[0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y)))]
    even = np.searchsorted(x, np.linspace(x[0], x[-1], MOST_POINTS * 3 // 4 - 2))
    along = np.searchsorted(way, np.linspace(0, way[-1], MOST_POINTS // 4 - 2))
    return np.unique(np.minimum(np.r_[0, even, along, len(x) - 1], len(x) - 1))


def _list(values: NDArray[Any]) -> list[float]:
    return [round(value, 6) for value in values.tolist()]
