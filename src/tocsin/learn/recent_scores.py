"""Scores by the models in use for jobs since their training: they determine the weight of a new model's own part."""

import polars as pl

from tocsin.core.detector import Known
from tocsin.failure.fitted import FittedFailure
from tocsin.failure.history_features import history_features
from tocsin.failure.labels import failed
from tocsin.failure.recent_scores import RecentScores
from tocsin.judge.answers import as_known

__all__ = ["recent_scores", "weighed_at"]


def recent_scores(champion: FittedFailure, labelled: pl.DataFrame, known: Known) -> RecentScores | None:
    """Scores for outcomes that became known since, and for earlier ones by earlier champions; None without experience.

    `labelled` are all jobs with a known outcome for the target. Each is scored once, by the model that was in use when
    its outcome became known, so by none that learned from it.
    """
    earlier, stage = champion.recent, champion.columns.stage
    new = (
        pl.col("submit") > champion.window.last
        if earlier is None
        else pl.col("known_at") > earlier.known_until
    )
    jobs = labelled.filter(new)
    if not jobs.height or champion.experience is None:
        return earlier
    visible = as_known(jobs, stage)
    both = champion.both_scores(visible, history_features(visible, known, stage=stage))
    assert both is not None, "it has other clusters' experience"
    found = RecentScores(
        *both,
        failed=failed(jobs),
        submit=jobs["submit"].to_numpy(),
        known_at=jobs["known_at"].to_numpy(),
    )
    return (found if earlier is None else earlier.followed_by(found)).latest()


def weighed_at(model: FittedFailure, recent: RecentScores | None, cut: int) -> FittedFailure:
    """The model as it would be used from the cut on: on held-back days, the challenger is weighed like the champion,
    by scores of outcomes that were known before them."""
    return model.weighed_by(None if recent is None else recent.known_by(cut))
