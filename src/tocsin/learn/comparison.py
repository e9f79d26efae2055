"""The decision of a contest: by how much the challenger is better, with an interval from a paired bootstrap."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.json_form import to_json

__all__ = ["FEWEST_BLOCKS", "LEVEL", "MARGIN", "RESAMPLES", "Measure", "Result", "decide", "require_blocks"]

RESAMPLES = 1000
LEVEL = 0.95
MARGIN = 0.02
"""Share of the champion's figure: a challenger that is at most this much worse, with 97.5 % confidence, is not worse."""
FEWEST_BLOCKS = 10

Measure = Callable[[NDArray[np.float64]], tuple[float, float]]
"""The figures of champion and challenger on the held-back rows, with a weight for each row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a contest; `gain` is how much better the challenger is, whether higher or lower is better."""

    figure: str
    held_back: str
    rows: int
    champion: float
    challenger: float
    gain: float
    low: float
    high: float
    confident: bool = True
    """Whether "not worse" must be shown with confidence; if not, the figure alone decides."""

    @property
    def better(self) -> bool:
        """Better beyond noise: the whole interval of the gain lies above zero."""
        return self.low > 0

    @property
    def not_worse(self) -> bool:
        """Not worse by more than the margin: then the fresher model is preferred."""
        return (self.low if self.confident else self.gain) >= -MARGIN * abs(self.champion)

    @property
    def promotes(self) -> bool:
        return self.better or self.not_worse

    @property
    def why(self) -> str:
        """A sentence for the card."""
        found = (
            "better beyond noise"
            if self.better
            else f"not worse (at most {MARGIN:.0%}{' with confidence' if self.confident else ''})"
            if self.not_worse
            else "not shown to be as good"
        )
        return (
            f"{found}: {self.figure} {self.challenger:.4f} against {self.champion:.4f} of the champion on "
            f"{self.held_back}; gain {self.gain:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            **to_json(self),
            "better": self.better,
            "not_worse": self.not_worse,
            "promotes": self.promotes,
        }


def require_blocks(blocks: NDArray[Any], held_back: str) -> int:
    """The number of blocks; with too few, an interval would mean nothing."""
    count = len(np.unique(blocks))
    if count < FEWEST_BLOCKS:
        raise ModelError(
            f"the held-back data ({held_back}) fall into {count} independent blocks; the contest needs {FEWEST_BLOCKS}"
        )
    return count


def decide(
    measure: Measure,
    blocks: NDArray[Any],
    *,
    figure: str,
    higher_is_better: bool,
    held_back: str,
    confident: bool = True,
    seed: int = 0,
) -> Result:
    """Compare both models on all rows, and on blocks drawn with replacement, the same for both."""
    count = require_blocks(blocks, held_back)
    numbers = np.unique(blocks, return_inverse=True)[1]
    sign = 1.0 if higher_is_better else -1.0
    champion, challenger = measure(np.ones(len(numbers)))
    random = np.random.default_rng(seed)
    gains = np.empty(RESAMPLES)
    for resample in range(RESAMPLES):
        times = np.bincount(random.integers(count, size=count), minlength=count)
        one, other = measure(times[numbers].astype(np.float64))
        gains[resample] = sign * (other - one)
    known = gains[np.isfinite(gains)]
    if not np.isfinite([champion, challenger]).all() or len(known) < RESAMPLES / 2:
        raise ModelError(f"{figure} is not defined on the held-back data ({held_back})")
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Result(
        figure=figure,
        held_back=held_back,
        rows=len(numbers),
        champion=float(champion),
        challenger=float(challenger),
        gain=float(sign * (challenger - champion)),
        low=float(low),
        high=float(high),
        confident=confident,
    )
