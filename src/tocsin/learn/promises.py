"""Whether the model's alarms kept the promised precision, month by month."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tocsin.models.promise import Range

__all__ = ["Promise", "months_kept"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """In how many months the model's alarms kept a rule on precision."""

    precision: float
    """What the rule promises."""
    months: int
    silent: int
    """Months without an alarm of the model."""
    kept: int
    """Months with at least the promised precision."""
    possible: int
    """Months with a precision that is not below the promise by more than chance with so few alarms: the promise is in the
    95 % interval of the month's precision, or below it."""
    inside: int
    """Months whose precision is in the range expected when the models were trained."""
    missed: list[str]
    """The months in which it was not kept."""


def months_kept(
    precision: float,
    months: NDArray[np.str_],
    y: Floats,
    alarms: NDArray[np.bool_],
    expected: Sequence[Range | None],
) -> Promise:
    """`months` and the following have a value for each job; a model without alarms in its training expects the rule."""
    low = np.array([each.low if each else precision for each in expected])
    high = np.array([each.high if each else 1.0 for each in expected])
    kept, possible, inside, missed = 0, 0, 0, []
    names = np.unique(months)
    for name in names:
        rows = alarms & (months == name)
        if not rows.any():
            continue
        found = float(y[rows].mean())
        kept += found >= precision
        possible += _highest(found, int(rows.sum())) >= precision
        inside += bool(low[rows].mean() <= found <= high[rows].mean())
        if found < precision:
            missed.append(str(name))
    silent = len(names) - kept - len(missed)
    return Promise(
        precision=precision,
        months=len(names),
        silent=silent,
        kept=kept,
        possible=possible,
        inside=inside,
        missed=missed,
    )


def _highest(share: float, count: int) -> float:
    """The upper end of Wilson's 95 % interval of a share."""
    z = 1.96
    middle, width = (
        share + z**2 / (2 * count),
        z * np.sqrt(share * (1 - share) / count + (z / count) ** 2 / 4),
    )
    return float((middle + width) / (1 + z**2 / count))
