"""The audit of a back-test: with a different future from T on, every prediction before T must be identical."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tocsin.core.frames import key_text, reached_at
from tocsin.core.stages import Stage
from tocsin.judge.check_data import scrambled
from tocsin.learn.walk import StepResult, Walk

__all__ = ["Audit", "audit"]


@dataclass(frozen=True, slots=True)
class Audit:
    until: int
    """T: what became known after it was changed, and the jobs after it are different."""
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
    walk: Callable[[pl.DataFrame, int], Walk],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Repeat the first half of a back-test on jobs with a different future; `walk` runs it for jobs and a start."""
    until = int(np.median(np.concatenate([each.jobs["submit"].to_numpy() for each in walked])))
    again = walk(scrambled(jobs, until), walked[0].step.cut)
    count = sum(step.cut <= until for step in again.steps)
    repeated = []
    for each in again:
        repeated.append(each)
        if progress is not None:
            progress(len(repeated), count)
        if len(repeated) >= count:
            break
    before, after = (_predictions(each, again.request.stage, until) for each in (walked, repeated))
    both = before.join(after, on="job", how="left", suffix="_again")
    columns = [name for name in before.columns if name not in ("job", "at")]
    differ = both.filter(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_again")) for name in columns)
    )
    return Audit(until, both.height, differ.height, differ["job"][0] if differ.height else None)


def _predictions(walked: Sequence[StepResult], stage: Stage, until: int) -> pl.DataFrame:
    """For each job that reached the stage by then: the bits of its probability and bound, and its alarms."""
    return pl.concat(
        each.jobs.select(
            key_text(),
            at=reached_at(stage),
            probability=pl.Series(np.ascontiguousarray(each.probability).view(np.int64)),
            bound=pl.Series(np.ascontiguousarray(each.bound).view(np.int64)),
            **{source: pl.Series(flags) for source, flags in each.alarms.items()},
        )
        for each in walked
    ).filter(pl.col("at") <= until)
