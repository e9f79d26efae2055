"""What each public log teaches: features that carry over between clusters, and how its jobs ended."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.frames import reached_at
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.stages import Stage
from tocsin.failure.experience import named_for
from tocsin.failure.feature_table import FeatureTable
from tocsin.failure.features import FEATURES as DECLARED
from tocsin.failure.history_features import NODE_FEATURES, history_features
from tocsin.failure.node_hours import node_hours
from tocsin.failure.resources import KINDS, share_used
from tocsin.history import recipe
from tocsin.history.replay import Replay
from tocsin.models.engines import Floats, Matrix

__all__ = ["FEATURES", "Lesson", "lessons"]

MOST = 5000
"""Jobs of one cluster that teach, spread over its whole log; more change little, as all clusters count alike."""
LATE = 2500
"""Further jobs of its last 20 %, which measure."""
_KEYS = ("user", "place", "size", "limit", "shape", "twin", "name", "executable", "cluster", "partition")
_STATISTICS = (
    "ended",
    "failed",
    "failed_last3",
    "failed_last10",
    "failed_last40",
    "failed_week",
    "streak",
    "since",
    "since_unsuccessful",
    "since_completed",
    "since_submitted",
    "submitted_hour",
    "elapsed_last",
    "elapsed_unsuccessful",
    "time_used",
    "running",
)
_REQUEST = (
    "req_nodes",
    "req_cpus",
    "time_limit",
    "limit_odd",
    "cpu_time",
    "interactive",
    "array_tasks",
    "has_dependency",
)
_LATER = {
    Stage.SUBMIT: (),
    Stage.START: ("wait", "granted", *NODE_FEATURES),
    Stage.EARLY: ("wait", "granted", *NODE_FEATURES),
}


def _features(stage: Stage) -> tuple[str, ...]:
    """No identity, no hour and no calendar: rates, counts, streaks and ages of kinds of jobs, and the request."""
    past = [recipe.column(key, statistic) for key in _KEYS for statistic in _STATISTICS]
    return (*_REQUEST, *(name for name in past if name in DECLARED), *_LATER[stage])


FEATURES = {stage: _features(stage) for stage in _LATER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """Some jobs of one cluster, in order of time, for one target."""

    cluster: str
    target: Target
    X: Matrix
    failed: Floats
    submit: NDArray[np.int64]
    hours: Floats
    late: NDArray[np.bool_]
    """Whether a job is among the last 20 %."""
    teaches: NDArray[np.bool_]
    used: Mapping[str, Floats]
    """For each resource what completed jobs used of their request, in logarithms; NaN where it is not known."""

    def spread(self, count: int) -> NDArray[np.int64]:
        """That many rows at most, evenly over time."""
        return np.unique(np.linspace(0, len(self.failed) - 1, min(count, len(self.failed))).astype(np.int64))


def lessons(logs: Sequence[tuple[str, Callable[[], pl.DataFrame]]], stage: Stage) -> Iterator[Lesson]:
    """For each log those of both targets, or one where cancelled jobs are not told apart."""
    for cluster, read in logs:
        log = read()
        past = Replay(log)
        for target in Target:
            wanted = [str(outcome) for outcome in TARGETS[target]]
            cancelled = log["outcome"].eq(str(Outcome.CANCELLED)).any()
            failed = log["outcome"].is_in([str(outcome) for outcome in TARGETS[Target.FAILED]]).any()
            if target is Target.FAILED and not (failed and cancelled):
                continue  # the same jobs, or none
            labelled = log.filter(
                pl.col("outcome").is_in([*wanted, str(Outcome.COMPLETED)]), reached_at(stage).is_not_null()
            ).sort("submit", "job_id", "task", nulls_last=False)
            yield _lesson(cluster, target, labelled, past, stage)


def _lesson(cluster: str, target: Target, jobs: pl.DataFrame, past: Any, stage: Stage) -> Lesson:
    random, count = np.random.default_rng(0), jobs.height
    cut = int(count * 0.8)
    teach = random.choice(count, min(MOST, count), replace=False)
    late = cut + random.choice(count - cut, min(LATE, count - cut), replace=False)
    rows = np.union1d(teach, late)
    chosen = jobs[rows]
    table = FeatureTable(named_for(FEATURES[stage], target), zone="UTC", codes={})
    history = history_features(chosen, past, stage=stage, names=table.reads)
    return Lesson(
        cluster=cluster,
        target=target,
        X=np.ascontiguousarray(table.values(chosen, history)),
        failed=chosen["outcome"].ne(str(Outcome.COMPLETED)).to_numpy().astype(np.float64),
        submit=chosen["submit"].to_numpy(),
        hours=node_hours(chosen),
        late=rows >= cut,
        teaches=np.isin(rows, teach),
        used={kind.name: share_used(kind, chosen) for kind in KINDS},
    )
