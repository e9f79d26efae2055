"""The audit of a walk: with another future from T on, every prediction before T must be the same, bit by bit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tocsin.core.detector import Known
from tocsin.core.frames import key_text, reached_at
from tocsin.core.stages import Stage
from tocsin.failure.detector import FailureDetector
from tocsin.judge.check_data import scrambled
from tocsin.learn.walk import StepResult, Walk, WalkRequest

__all__ = ["Audit", "audit"]


@dataclass(frozen=True, slots=True)
class Audit:
    until: int
    """T: all that became known after it was changed, and the jobs after it are others."""
    compared: int
    differing: int
    example: str | None
    """A job whose prediction differs."""

    @property
    def clean(self) -> bool:
        return self.compared > 0 and self.differing == 0


def audit(
    jobs: pl.DataFrame,
    walked: Sequence[StepResult],
    detector: FailureDetector,
    request: WalkRequest,
    past_of: Callable[[pl.DataFrame], Known],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Walk again through the first half of the jobs, in a world with another future from there on."""
    until = int(np.median(np.concatenate([each.jobs["submit"].to_numpy() for each in walked])))
    other = scrambled(jobs, until)
    again = Walk(other, past_of(other), detector, request, start=walked[0].step.cut)
    steps = [step for step in again.steps if step.cut <= until]
    parts = []
    for number, each in enumerate(again):
        parts.append(each)
        if progress is not None:
            progress(number + 1, len(steps))
        if number + 1 >= len(steps):
            break
    before, after = (_told(each, request.stage, until) for each in (walked, parts))
    same = before.join(after, on="job", how="left", suffix="_again")
    differ = same.filter(pl.col("bits").ne_missing(pl.col("bits_again")))
    return Audit(until, same.height, differ.height, differ["job"][0] if differ.height else None)


def _told(walked: Sequence[StepResult], stage: Stage, until: int) -> pl.DataFrame:
    """Each job that was asked about by then, at its stage, with the bits of its probability."""
    return pl.concat(
        each.jobs.select(
            key_text(),
            at=reached_at(stage),
            bits=pl.Series(np.ascontiguousarray(each.probability).view(np.int64)),
        )
        for each in walked
    ).filter(pl.col("at") <= until)
