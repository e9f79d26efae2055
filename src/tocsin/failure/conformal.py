"""Bounds that hold as often as stated: the offset that recent rows need, the latest of them counting most."""

from math import ceil

import numpy as np

from tocsin.models.engines import Floats

__all__ = ["FEWEST", "HALF_LIFE", "KEPT", "conformal_offset"]

HALF_LIFE = 5000.0
"""A row weighs half as much as one this many rows later. On weekly walks with a refit each month, completed jobs
within their bound: SDSC-BLUE 95.0 %, KTH-SP2 95.1 %, LLNL-Thunder 94.6 %, DOST-COARE 94.6 %, METACENTRUM 94.8 % (memory
93.7 %). With 1000, bursts of one user move the bound too much: LLNL-Thunder 93.8 %, METACENTRUM 93.3 % (memory 92.5 %)."""
KEPT = 8
"""Half-lives after which a row no longer matters (a weight of 1/256)."""
FEWEST = 20
"""Fewer rows cannot show the 95th percentile; the model's bound then stays as it is."""


def conformal_offset(scores: Floats, *, level: float = 0.95, half_life: float = HALF_LIFE) -> float:
    """The offset to add to a bound so that it holds for the share `level` of rows like the latest.

    `scores` are value minus bound of rows that the model did not learn from, in order of time; NaN for unknown values.
    The weighted conformal quantile (Barber et al. 2023, section 3): the next row counts as one above all, and weights
    decrease with age, because what a cluster runs changes.
    """
    known = scores[np.isfinite(scores)][-ceil(half_life * KEPT) :]
    if len(known) < FEWEST:
        return 0.0
    weights = 0.5 ** (np.arange(len(known))[::-1] / half_life)
    order = np.argsort(known, kind="stable")
    reached = np.cumsum(weights[order]) >= level * (weights.sum() + 1.0)
    return float(known[order][np.argmax(reached) if reached.any() else -1])
