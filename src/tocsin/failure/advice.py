"""Advice: a change supported by evidence as an edit of the script, with the model's risk before and after."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from tocsin.core.frames import SCHEMA
from tocsin.core.verdict import Advice
from tocsin.failure.changes import Change, Evidence, changes
from tocsin.failure.features import monotone
from tocsin.models.engines import Matrix
from tocsin.scripts.changes import change_edit, change_text
from tocsin.scripts.submission import Submission

__all__ = ["Risk", "advise", "moved"]

MARGIN = 0.02
"""A risk that falls by less counts as unchanged."""

Risk = Callable[[pl.DataFrame], float]
"""The model's probability for a job with a changed request, everything else unchanged."""


def moved(before: Matrix, after: Matrix, names: Sequence[str]) -> Matrix:
    """The features of a job with a changed request, where only those change in which the model is monotone.

    The others (the time limit itself, outcomes of jobs with this limit) describe the kind of job, which a new number
    in its request does not change.
    """
    moves = np.array(monotone(names)) != 0
    return np.where(moves, after, before)


def advise(job: pl.DataFrame, evidence: Evidence, risk: Risk) -> list[Advice]:
    """Advice for a frame of one job, without changes that raise the model's risk."""
    found = []
    before: float | None = None
    for change in changes(job.row(0, named=True), evidence):
        if not change.asks_model:
            found.append(_written(change, evidence.submission))
            continue
        before = round(risk(job), 2) if before is None else before
        after = round(risk(_changed(job, change)), 2)
        if after <= before:
            found.append(_written(change, evidence.submission, (before, after)))
    return found


def _changed(job: pl.DataFrame, change: Change) -> pl.DataFrame:
    """Without a query: polars would pass it to its threads, which take milliseconds to answer on a busy machine."""
    value = pl.Series(change.field, [change.value], SCHEMA[change.field])
    return job.clone().replace_column(job.get_column_index(change.field), value)


def _written(
    change: Change, submission: Submission | None, risks: tuple[float, float] | None = None
) -> Advice:
    before, after = risks or (None, None)
    why = change.why
    if risks and not change.less and risks[1] > risks[0] - MARGIN:
        why += f"; the model's risk hardly changes ({risks[0]:.0%} before, {risks[1]:.0%} after)"
    return Advice(
        change=change_text(submission, change.field, change.value),
        why=why,
        edit=change_edit(submission, change.field, change.value),
        field=change.field,
        risk_before=before,
        risk_after=after,
    )
