"""Calibration: a rising curve from scores to probabilities, chosen by the Brier score on later rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError

__all__ = [
    "IDENTITY",
    "Calibrator",
    "Chosen",
    "calibrate",
    "calibrator_from_json",
    "fit_beta",
    "fit_isotonic",
    "fit_platt",
    "towards_identity",
]

Floats = NDArray[np.float64]
_EDGE = 1e-6  # scores closer to 0 or 1 are clipped
_FEWEST = 50  # with fewer rows, any curve is noise


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A curve by its kind and its numbers.

    identity   p
    logistic   sigmoid(a logit p + b)                    [a, b], Platt 1999
    beta       sigmoid(a ln p - b ln(1 - p) + c)         [a, b, c], Kull et al. 2017
    isotonic   straight lines between breakpoints        [[x …], [y …]]
    """

    kind: str
    numbers: tuple[Any, ...] = ()

    def apply(self, p: NDArray[Any]) -> Floats:
        """Probabilities between 0 and 1; a higher score never gives a lower one."""
        scores = np.asarray(p, dtype=np.float64)
        if self.kind == "identity":
            return scores
        if self.kind == "isotonic":
            return np.asarray(np.interp(scores, *self.numbers))
        inner = np.clip(scores, _EDGE, 1 - _EDGE)
        # No matrix product: its rounding of a row depends on the other rows.
        odds = (_sigmoid_columns(self.kind, inner) * np.array(self.numbers)).sum(axis=-1)
        # Beyond 36, the result would round to 1.
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(odds, -35.0, 35.0))))

    def to_json(self) -> dict[str, Any]:
        numbers = [list(n) if isinstance(n, tuple) else n for n in self.numbers]
        return {"kind": self.kind, "numbers": numbers}


IDENTITY = Calibrator("identity")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The best curve, the Brier score of each kind on the later rows, and the reason if none was fitted."""

    calibrator: Calibrator
    brier: Mapping[str, float]
    reason: str | None = None


def calibrate(p: NDArray[Any], y: NDArray[Any], *, share: float = 0.6) -> Chosen:
    """Fit every kind on the first share of the rows, compare on the rest, and fit the best on all of them.

    Rows are in order of time and must not be training rows. The logistic curve keeps the ranking, so it only has to be
    better than the identity. A richer one must be better by more than two standard errors: steps fitted to noise make
    ties and cost ranking.
    """
    scores, labels = _checked(p, y)
    cut = round(share * len(labels))
    if len(labels) < _FEWEST or any(np.unique(part).size < 2 for part in (labels[:cut], labels[cut:])):
        return Chosen(
            IDENTITY, {}, f"{len(labels)} rows, or rows of one class, are not enough to calibrate on"
        )
    best, least = "identity", _squares(IDENTITY, scores[cut:], labels[cut:])
    brier = {best: float(least.mean())}
    for kind, fit in _FITS.items():
        squares = _squares(fit(scores[:cut], labels[:cut]), scores[cut:], labels[cut:])
        brier[kind] = float(squares.mean())
        gain = least - squares
        sure = 0.0 if kind == "logistic" else 2 * gain.std() / np.sqrt(len(gain))
        if gain.mean() > sure:
            best, least = kind, squares
    return Chosen(_FITS[best](scores, labels) if best in _FITS else IDENTITY, brier)


def fit_platt(p: NDArray[Any], y: NDArray[Any]) -> Calibrator:
    """The logistic curve; flat if it would fall."""
    scores, labels = _checked(p, y)
    numbers = _logistic(_sigmoid_columns("logistic", np.clip(scores, _EDGE, 1 - _EDGE)), labels, rising=1)
    return Calibrator("logistic", tuple(numbers.tolist()))


def fit_beta(p: NDArray[Any], y: NDArray[Any]) -> Calibrator:
    """The beta curve; the identity is one of its shapes."""
    scores, labels = _checked(p, y)
    numbers = _logistic(_sigmoid_columns("beta", np.clip(scores, _EDGE, 1 - _EDGE)), labels, rising=2)
    return Calibrator("beta", tuple(numbers.tolist()))


def fit_isotonic(p: NDArray[Any], y: NDArray[Any]) -> Calibrator:
    """The best rising steps, joined by lines; never 0 or 1."""
    from sklearn.isotonic import IsotonicRegression  # type: ignore[import-untyped]  # it ships no types

    scores, labels = _checked(p, y)
    edge = 1.0 / (len(labels) + 2)
    fitted = IsotonicRegression(y_min=edge, y_max=1 - edge, out_of_bounds="clip").fit(scores, labels)
    x, heights = np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64)
    return Calibrator("isotonic", (tuple(x.tolist()), tuple(np.maximum.accumulate(heights).tolist())))


def towards_identity(calibrator: Calibrator, share: float) -> Calibrator:
    """The curve moved by a share of the way to the identity, which is one of the shapes of each kind."""
    kind, numbers, kept = calibrator.kind, calibrator.numbers, 1 - share
    if kind == "identity":
        return calibrator
    if kind == "isotonic":
        x, heights = (np.asarray(each, np.float64) for each in numbers)
        return Calibrator(kind, (tuple(x.tolist()), tuple((kept * heights + share * x).tolist())))
    *slopes, shift = (float(each) for each in numbers)
    return Calibrator(kind, (*(kept * slope + share for slope in slopes), kept * shift))


# Simplest first.
_FITS: Mapping[str, Callable[[Floats, Floats], Calibrator]] = {
    "logistic": fit_platt,
    "beta": fit_beta,
    "isotonic": fit_isotonic,
}


def calibrator_from_json(document: Mapping[str, Any]) -> Calibrator:
    """What `to_json` wrote; a malformed or falling curve is an error."""
    try:
        kind, numbers = document["kind"], document["numbers"]
        if len(document) != 2 or not isinstance(numbers, list):
            raise ValueError
        values = [np.array(n, dtype=np.float64) for n in numbers]
        if not all(np.isfinite(v).all() for v in values):
            raise ValueError
        if kind == "isotonic":
            x, heights = values
            if x.ndim != 1 or x.shape != heights.shape or not x.size or (np.diff(x) <= 0).any():
                raise ValueError
            if (np.diff(heights) < 0).any() or heights[0] < 0 or heights[-1] > 1:
                raise ValueError
            return Calibrator(kind, (tuple(x.tolist()), tuple(heights.tolist())))
        sizes = {"identity": 0, "logistic": 2, "beta": 3}
        if len(values) != sizes[kind] or any(v.ndim for v in values) or any(v < 0 for v in values[:-1]):
            raise ValueError
        return Calibrator(kind, tuple(float(v) for v in values))
    except (KeyError, TypeError, ValueError):
        raise ModelError(
            f"{str(document)[:80]} is not a calibration; restore the model from a backup or train again"
        ) from None


def _sigmoid_columns(kind: str, p: Floats) -> Floats:
    ones = np.ones_like(p)
    if kind == "logistic":
        return np.stack([np.log(p / (1 - p)), ones], axis=-1)
    return np.stack([np.log(p), -np.log1p(-p), ones], axis=-1)


def _logistic(columns: Floats, y: Floats, *, rising: int) -> Floats:
    """Newton's method for a logistic regression whose first `rising` coefficients are not negative.

    Labels are smoothed as in Platt (equation 3.1.3), so that separable rows give finite coefficients.
    """
    positive = y.sum()
    targets = np.where(y == 1, (positive + 1) / (positive + 2), 1 / (len(y) - positive + 2))
    used = np.ones(columns.shape[1], dtype=bool)
    while True:
        found = np.zeros(columns.shape[1])
        found[used] = _newton(columns[:, used], targets)
        falling = (found < 0) & used & (np.arange(len(found)) < rising)
        if not falling.any():
            return found
        used &= ~falling


def _newton(columns: Floats, targets: Floats) -> Floats:
    found = np.zeros(columns.shape[1])
    ridge = 1e-9 * len(targets) * np.eye(len(found))  # so that collinear columns do not make it singular
    loss = _loss(columns, targets, found)
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-np.clip(columns @ found, -40.0, 40.0)))
        curve = (columns * (p * (1 - p))[:, None]).T @ columns + ridge
        step = np.linalg.solve(curve, columns.T @ (targets - p) - ridge @ found)
        while (now := _loss(columns, targets, found + step)) > loss and np.abs(step).max() > 1e-12:
            step = step / 2
        if loss - now <= 1e-12 * loss:
            return found
        found, loss = found + step, now
    return found


def _loss(columns: Floats, targets: Floats, numbers: Floats) -> float:
    odds = columns @ numbers
    return float(np.logaddexp(0, odds).sum() - targets @ odds)


def _squares(calibrator: Calibrator, p: Floats, y: Floats) -> Floats:
    return np.asarray((calibrator.apply(p) - y) ** 2)


def _checked(p: NDArray[Any], y: NDArray[Any]) -> tuple[Floats, Floats]:
    scores, labels = np.asarray(p, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if scores.shape != labels.shape or not scores.size or not ((scores >= 0) & (scores <= 1)).all():
        raise ModelError("calibration needs one score between 0 and 1 per outcome, and at least one row")
    return scores, labels
