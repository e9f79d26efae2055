"""Held-back data on which failure models compete: the last days, unseen by both; in the service and in a back-test."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.units import format_instant
from tocsin.failure.labels import FEWEST, FEWEST_OF_EACH, failed, mature
from tocsin.learn.comparison import FEWEST_BLOCKS, Measure, Result, decide
from tocsin.models.metrics import Sorted, measure_weighted
from tocsin.models.splits import DAY

__all__ = ["FIGURE", "HeldBack", "compete", "counted", "hold_back", "measure_both"]

FIGURE = "average_precision"
WIDER = (1, 2, 4, 8)
"""Multiples of the requested days: a small cluster needs more of them for enough jobs to compare on."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    cut: int
    past: pl.DataFrame
    """The jobs whose outcome was known before the cut, on which a challenger is trained."""
    held: pl.DataFrame
    """The jobs submitted after it."""

    @property
    def text(self) -> str:
        return f"{self.held.height:,} jobs submitted since {format_instant(self.cut)}"

    @property
    def blocks(self) -> NDArray[np.str_]:
        """The jobs of one user on one day, which tend to fail together."""
        return _blocks(self.held)


def counted(jobs: pl.DataFrame, target: Target) -> NDArray[np.bool_]:
    """Whether each job's outcome counts for the target; a job that tocsin stopped does not."""
    labels = [str(outcome) for outcome in (*TARGETS[target], Outcome.COMPLETED)]
    counts = pl.col("outcome").is_in(labels) & ~pl.col("intervened").fill_null(False)
    flags: NDArray[np.bool_] = jobs.select(counts.fill_null(False)).to_series().to_numpy()
    return flags


def hold_back(labelled: pl.DataFrame, *, days: float, trained_until: int, target: Target) -> HeldBack:
    """Jobs with a known outcome for the target, in order of time; `trained_until`: the champion's last job.

    The last days are held back, or more until there are enough jobs of both kinds.
    """
    until = int(labelled["known_at"].max())  # type: ignore[arg-type]  # an instant
    short = None
    for times in WIDER:
        cut = until - round(days * times * DAY)
        if cut <= trained_until:
            break
        held = mature(labelled.filter(pl.col("submit") > cut))
        if (short := _too_few(held, target)) is None:
            past = labelled.filter(pl.col("known_at") <= cut, pl.col("submit") < cut)
            return HeldBack(cut, past, held)
    raise ModelError(
        short
        or f"it was trained on jobs up to {format_instant(trained_until)}, and what came after {format_instant(cut)} is held "
        "back, so there is nothing new to train on yet"
    )


def _too_few(held: pl.DataFrame, target: Target) -> str | None:
    bad, blocks = int(failed(held).sum()), len(np.unique(_blocks(held)))
    if held.height >= FEWEST and min(bad, held.height - bad) >= FEWEST_OF_EACH and blocks >= FEWEST_BLOCKS:
        return None
    return (
        f"too few jobs are held back: {held.height:,} with a known outcome, {bad:,} of them {target}; a contest needs "
        f"{FEWEST}, {FEWEST_OF_EACH} of each kind, of at least {FEWEST_BLOCKS} users or days"
    )


def _blocks(jobs: pl.DataFrame) -> NDArray[np.str_]:
    named = pl.concat_str(pl.col("user").fill_null(""), pl.col("submit") // DAY, separator="/")
    return np.asarray(jobs.select(named).to_series().to_numpy(), dtype=np.str_)


def measure_both(
    held: pl.DataFrame, champion: NDArray[np.float64], challenger: NDArray[np.float64]
) -> Measure:
    """The figure of both, from their probabilities for the held-back jobs."""
    y = failed(held)
    one, other = Sorted(y, champion), Sorted(y, challenger)
    return lambda weight: (measure_weighted(FIGURE, one, weight), measure_weighted(FIGURE, other, weight))


def compete(back: HeldBack, champion: NDArray[np.float64], challenger: NDArray[np.float64]) -> Result:
    """Whether the challenger should replace the champion."""
    both = measure_both(back.held, champion, challenger)
    return decide(
        both, back.blocks, figure=FIGURE, higher_is_better=True, held_back=back.text, confident=False
    )
