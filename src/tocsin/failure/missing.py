"""What could not be said of a job, and why."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage

__all__ = ["BEFORE", "missing_parts"]

BEFORE = "user.submitted"
"""The statistic that tells whether the user was ever seen."""
_NO_USER = "the job names no user, so only its request and the cluster's past speak"
_NOT_REACHED = "the job has not reached this stage, so nothing can be said of it here"


def missing_parts(
    jobs: pl.DataFrame, history: pl.DataFrame, stage: Stage, clusters: Sequence[str]
) -> list[dict[str, str] | None]:
    """For each job what could not be said; None where nothing is amiss. `clusters` are those that the model knows."""
    rows: list[dict[str, str] | None] = [None] * jobs.height
    strange = ~(history[BEFORE].to_numpy() > 0)
    for row in np.flatnonzero(strange).tolist():
        user = jobs["user"][row]
        rows[row] = {
            "failure.history": f'no earlier job of the user "{user}" is known, so only the request and the cluster\'s past speak'
            if user is not None
            else _NO_USER
        }
    for row, cluster in enumerate(jobs.get_column("cluster").to_list()):
        if cluster not in clusters:
            rows[row] = {
                **(rows[row] or {}),
                "failure.cluster": f"the model learned from jobs of {', '.join(clusters)}, so its probability may be far off "
                f'on "{cluster}"; train one on the jobs of {cluster}',
            }
    if stage is not Stage.SUBMIT:
        waits = jobs.select(reached_at(stage)).to_series().is_null().to_numpy()
        for row in np.flatnonzero(waits).tolist():
            rows[row] = {"failure": _NOT_REACHED}
    return rows
