"""Live predictions with their outcomes: the rows on which live figures are measured."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.frames import key_text
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.labels import mature
from tocsin.judge.actions import is_control
from tocsin.learn.feedback import with_answers
from tocsin.models.splits import DAY
from tocsin.store.database import Store
from tocsin.store.jobs import Filter, load

__all__ = ["LiveJobs", "LiveRows", "live_jobs"]

_READ = ("cluster", "job_id", "task", "submit", "user", "array", "outcome", "known_at", "intervened")


@dataclass(frozen=True, slots=True)
class LiveRows:
    """Jobs with a prediction at one stage and a known outcome, and the counts of those left out."""

    frame: pl.DataFrame
    """The scores of each job, and `failed`, `user`, `submit`."""
    left_out: Mapping[str, int]
    """By reason: `waiting` for the outcome (or submitted too late for a fair share to be known), `other_outcome`,
    `intervened`, and `not_control` (beyond the control share, where tocsin acted on jobs)."""
    control: bool
    """Whether tocsin acted on jobs, so that only the control share counts."""

    @property
    def failed(self) -> NDArray[np.bool_]:
        return self.frame["failed"].to_numpy()

    @property
    def blocks(self) -> NDArray[np.str_]:
        """The jobs of one user on one day, which tend to fail together."""
        same = pl.concat_str(pl.col("user").fill_null(""), pl.col("submit") // DAY, separator="/")
        return self.frame.select(same).to_series().to_numpy()


@dataclass(frozen=True, slots=True)
class LiveJobs:
    """The jobs of a cluster that were alive since an instant, with their outcomes by now."""

    jobs: pl.DataFrame
    share: float
    """Share of the jobs left alone as control."""

    def rows(self, scores: pl.DataFrame, stage: Stage, target: Target) -> LiveRows:
        """`scores` have a column `job` and any others.

        A job that tocsin held or cancelled is no evidence. If it did so, all but the control share are left out as well:
        jobs whose alarm led to no action are not representative.
        """
        joined = _joined(self.jobs, scores, stage)
        touched = pl.col("intervened").fill_null(False)
        labels = [str(outcome) for outcome in (*TARGETS[target], Outcome.COMPLETED)]
        ended = joined.filter(pl.col("outcome").is_not_null(), pl.col("known_at").is_not_null())
        labelled = ended.filter(pl.col("outcome").is_in(labels))
        alone = labelled.filter(~touched)
        control = not joined.filter(touched).is_empty()
        kept = alone
        if control:
            flags = [is_control(job, self.share) for job in alone["job"]]
            kept = alone.filter(pl.Series(flags, dtype=pl.Boolean))
        fair = mature(kept.sort("submit"))
        left_out = {
            "waiting": joined.height - ended.height + kept.height - fair.height,
            "other_outcome": ended.height - labelled.height,
            "intervened": labelled.height - alone.height,
            "not_control": alone.height - kept.height,
        }
        return LiveRows(
            fair.with_columns(failed=pl.col("outcome") != str(Outcome.COMPLETED)), left_out, control
        )


def live_jobs(store: Store, cluster: str, *, since: int, share: float) -> LiveJobs:
    jobs = with_answers(store, load(store, Filter(clusters=[cluster], since=since), list(_READ)))
    return LiveJobs(jobs.filter(pl.col("array").is_null()).with_columns(key_text()), share)


def _joined(jobs: pl.DataFrame, scores: pl.DataFrame, stage: Stage) -> pl.DataFrame:
    """The jobs that have a score; at submission, a task has the score of its array."""
    found = jobs.join(scores, on="job", maintain_order="left")
    if stage is not Stage.SUBMIT:
        return found
    of_array = pl.format("{}:{}@{}", "cluster", "job_id", "submit").alias("of_array")
    tasks = jobs.filter(pl.col("task").is_not_null()).join(found, on="job", how="anti").with_columns(of_array)
    inherited = tasks.join(scores.rename({"job": "of_array"}), on="of_array", maintain_order="left")
    return pl.concat([found, inherited.select(found.columns)])
