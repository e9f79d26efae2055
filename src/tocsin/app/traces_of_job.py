"""Windows of one job with their scores, and windows of other jobs to compare with; bounded in size."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.jobs import find_jobs
from tocsin.app.times import parse_time
from tocsin.app.traces_models import OpenModel
from tocsin.core.errors import InputError, NodeListError, NotFound
from tocsin.core.ids import JobKey

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from tocsin.traces.model import Scores
    from tocsin.traces.windows import Windows

__all__ = ["JobRequest", "JobWindows", "find_job", "normal_windows", "read_job_windows"]

_HOUR = 3600
_MOST_NODES = 4
_MOST_OTHERS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """Which job, and which part of its life; by default, its last hour."""

    job: str
    cluster: str | None = None
    starttime: str | None = None
    endtime: str | None = None


@dataclass(frozen=True, slots=True)
class JobWindows:
    """The windows of all CPUs of a job's nodes while it ran."""

    key: JobKey
    job: "pl.DataFrame"
    """Its record."""
    windows: "Windows"
    mine: "NDArray[np.bool_]"
    """Which windows are the job's own."""
    scores: "Scores"
    span: tuple[int, int]

    @property
    def kind(self) -> str:
        return f"{self.job['user'][0]}/{self.job['name'][0]}"


def find_job(app: App, request: JobRequest) -> "pl.DataFrame":
    """The requested job, which must be unique."""
    jobs = find_jobs(app, request.job, request.cluster)
    if jobs.height > 1:
        raise InputError(
            f"{jobs.height} jobs have the id {request.job}; name a key that `tocsin job {request.job}` lists"
        )
    return jobs


def read_job_windows(app: App, request: JobRequest, job: "pl.DataFrame", opened: OpenModel) -> JobWindows:
    """The windows of a job on at most four nodes, scored."""
    from tocsin.core.fields import KEY

    key = JobKey(**job.select(KEY).row(0, named=True))
    zone, now = app.zone(key.cluster), int(time.time())
    last = parse_time(request.endtime, zone, now) if request.endtime else job["end"][0] or now
    first = parse_time(request.starttime, zone, now) if request.starttime else last - _HOUR
    windows = _read(app, _on_few_nodes(job, _MOST_NODES), (first, last), opened)
    mine = (windows.index["job"] == str(key)).fill_null(False).to_numpy()
    if not mine.any():
        raise NotFound(
            f"there are no windows of {key} in {app.home.windows}; is its node recorded, and were its traces not "
            "pruned? Read them with: tocsin traces import"
        )
    return JobWindows(key, job, windows, mine, opened.model.score(windows), (first, last))


def normal_windows(app: App, found: JobWindows, opened: OpenModel) -> "tuple[Windows, NDArray[np.float32]]":
    """Windows of other jobs at the same time that the model calls normal, and their embeddings.

    They include jobs of the same kind and idle CPUs, but no jobs confirmed as bad. One node is read for each other
    job.
    """
    import polars as pl

    from tocsin.store.jobs import Filter, load
    from tocsin.store.trace_regions import list_confirmed

    first, last = found.span
    jobs = load(app.store, Filter(clusters=[found.key.cluster], since=first, until=last)).drop_nulls("start")
    asked = pl.concat([jobs.tail(_MOST_OTHERS), found.job.select(jobs.columns)])
    windows = _read(app, _on_few_nodes(asked, 1), found.span, opened)
    bad = [str(found.key), *(each.job for each in list_confirmed(app.store))]
    windows = windows[~windows.index["job"].is_in(bad).fill_null(False).to_numpy()]
    scores = opened.model.score(windows)
    normal = scores.error <= opened.threshold
    return windows[normal], scores.embedding[normal]


def _read(app: App, jobs: "pl.DataFrame", span: tuple[int, int], opened: OpenModel) -> "Windows":
    from tocsin.app.traces_windows import stored_windows
    from tocsin.traces.windows import Windows

    first, last = span
    windows = Windows.from_frame(stored_windows(app, recent=max(1, last - first))(jobs, last))
    if len(windows) and windows.length != opened.model.length:
        raise InputError(
            f"windows have {windows.length} points, but model {opened.version} was trained on {opened.model.length}; "
            "set traces.window, or train again"
        )
    return windows


def _on_few_nodes(jobs: "pl.DataFrame", most: int) -> "pl.DataFrame":
    """The jobs as if they had only their first nodes, since a large job would fill the memory."""
    import polars as pl

    from tocsin.core.nodelist import expand_nodes

    few: list[str | None] = []
    for text in jobs["node_list"]:
        try:
            few.append(",".join(expand_nodes(text)[:most]) if text else None)
        except NodeListError:
            few.append(None)
    return jobs.with_columns(pl.Series("node_list", few, dtype=pl.String))
