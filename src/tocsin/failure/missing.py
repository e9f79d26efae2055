"""What cannot be computed for a job, and why."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from tocsin.core.frames import reached_at
from tocsin.core.stages import Stage
from tocsin.history.numbers import Numbers

__all__ = ["CLUSTER_JOBS", "USER_JOBS", "missing_parts"]

CLUSTER_JOBS = "cluster.submitted"
"""The number of known jobs of the cluster."""

USER_JOBS = "user.submitted"
"""The number of known jobs of the user."""
_NO_USER = "the job names no user; the prediction uses only its request and the cluster's history"
_NOT_REACHED = "the job has not reached this stage"


def missing_parts(
    jobs: pl.DataFrame, history: Numbers, stage: Stage, clusters: Sequence[str] | None
) -> list[dict[str, str] | None]:
    """For each job, the missing parts with the reason, or None; `clusters` trained the model (None: any)."""
    rows: list[dict[str, str] | None] = [None] * jobs.height
    strange = ~(history.column(USER_JOBS) > 0)
    for row in np.flatnonzero(strange).tolist():
        user = jobs["user"][row]
        rows[row] = {
            "failure.history": f'no earlier job of user "{user}" is known; the prediction uses only the request and the cluster\'s history'
            if user is not None
            else _NO_USER
        }
    for row, cluster in enumerate(jobs.get_column("cluster").to_list()):
        if clusters is not None and cluster not in clusters:
            rows[row] = {
                **(rows[row] or {}),
                "failure.cluster": f"the model was trained on jobs of {', '.join(clusters)}, so its probability may be wrong "
                f'for "{cluster}"; train one on jobs of {cluster}',
            }
    if stage is not Stage.SUBMIT:
        waits = jobs.select(reached_at(stage)).to_series().is_null().to_numpy()
        for row in np.flatnonzero(waits).tolist():
            rows[row] = {"failure": _NOT_REACHED}
    return rows
