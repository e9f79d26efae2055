"""Which jobs may be trained on: those with a label for the target that reached the stage, without a biased tail."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.frames import reached_at
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage

__all__ = ["FEWEST", "LATEST", "default_target", "failed", "mature", "trainable"]

FEWEST = 100
LATEST = 100_000
"""The latest jobs are trained on, at most this many. (SDSC-BLUE, last 20 %: AUC 0.902; with all 193,778: 0.901.)"""
FEWEST_OF_EACH = 10
SLOW = 0.95
"""Jobs beyond this quantile of the time from submission until the outcome is known count as slow."""
MOST_LEFT_OUT = 0.2
"""Share of the training span that may be left out, however slow the jobs are."""


def default_target(jobs: pl.DataFrame) -> Target:
    """Archives also write `cancelled` for jobs that the system killed, so there both count."""
    swf = jobs.height and jobs["source"].eq("swf").fill_null(False).mean()
    return Target.UNSUCCESSFUL if swf and float(swf) > 0.5 else Target.FAILED  # type: ignore[arg-type]  # the mean of flags


def trainable(jobs: pl.DataFrame, target: Target, stage: Stage) -> pl.DataFrame:
    """The jobs with a label for the target that reached the stage, in order of time; jobs we stopped have no label."""
    labels = [str(outcome) for outcome in (*TARGETS[target], Outcome.COMPLETED)]
    kept = jobs.filter(
        pl.col("outcome").is_in(labels),
        pl.col("known_at").is_not_null(),
        ~pl.col("intervened").fill_null(False),
        reached_at(stage).is_not_null(),
    ).sort("submit", "job_id", "task", nulls_last=False)
    kept = mature(kept)
    bad = kept["outcome"].ne(str(Outcome.COMPLETED)).sum()
    if kept.height < FEWEST:
        raise ModelError(
            f"{kept.height:,} of {jobs.height:,} jobs have a known outcome for the target {target} at {stage}; "
            f"training needs at least {FEWEST}: import a longer log"
        )
    if min(bad, kept.height - bad) < FEWEST_OF_EACH:
        raise ModelError(
            f"{bad:,} of {kept.height:,} jobs are {target}; training needs at least {FEWEST_OF_EACH} that are and as "
            "many that are not: use a longer window or another target"
        )
    return kept.tail(LATEST)


def mature(jobs: pl.DataFrame) -> pl.DataFrame:
    """Without the jobs submitted so late that the slow ones among them cannot have ended.

    Known outcomes of the last hours are mostly quick failures: in a week of the demo cluster, 54 % of the last known
    jobs had failed, compared with 20 % overall.
    """
    if jobs.height < FEWEST:
        return jobs
    submit, known = jobs["submit"], jobs["known_at"]
    last = int(known.max())  # type: ignore[arg-type]  # an instant
    slow = float((known - submit).quantile(SLOW) or 0)
    return jobs.filter(pl.col("submit") <= last - min(slow, (last - int(submit[0])) * MOST_LEFT_OUT))


def failed(jobs: pl.DataFrame) -> NDArray[np.float64]:
    return jobs["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64)
