"""The traces of a job as documents: the model's error on each window, and the windows in a plane."""

from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.traces_models import OpenModel, open_trace_model
from tocsin.app.traces_of_job import JobRequest, JobWindows, find_job, normal_windows, read_job_windows
from tocsin.core.units import format_instant

if TYPE_CHECKING:
    from tocsin.traces.windows import Windows

__all__ = ["job_embeddings", "job_windows"]

_MOST_WINDOWS = 500
_MOST_OTHERS = 500


def job_windows(app: App, request: JobRequest) -> dict[str, Any]:
    """The windows of a job, largest error first; at most 500."""
    import numpy as np

    opened, found = _read(app, request)
    rows = np.flatnonzero(found.mine)
    order = rows[np.argsort(-found.scores.error[rows], kind="stable")][:_MOST_WINDOWS]
    return {
        "job": str(found.key),
        "model": opened.version,
        "threshold": opened.threshold,
        "windows_in_all": len(rows),
        "windows": [
            {**_place(found.windows, int(row)), **_error(float(found.scores.error[row]), opened)}
            for row in order
        ],
    }


def job_embeddings(app: App, request: JobRequest) -> dict[str, Any]:
    """The embeddings of a job's windows and of normal windows of the same time, on their two principal axes."""
    import numpy as np

    from tocsin.traces.plane import Plane

    opened, found = _read(app, request)
    rows = np.flatnonzero(found.mine)[-_MOST_WINDOWS:]
    others, embedded = normal_windows(app, found, opened)
    kept = min(len(others), _MOST_OTHERS)
    together = np.concatenate([found.scores.embedding[rows], embedded[:kept]])
    plane = Plane.fit(together)
    mine = [
        {**_place(found.windows, int(row)), **_error(float(found.scores.error[row]), opened), "mine": True}
        for row in rows
    ]
    rest = [{**_place(others, row), "mine": False} for row in range(kept)]
    return {
        "job": str(found.key),
        "model": opened.version,
        "explained": list(plane.explained),
        "points": [
            {**point, "x": float(x), "y": float(y)}
            for point, (x, y) in zip([*mine, *rest], plane.project(together), strict=True)
        ],
    }


def _read(app: App, request: JobRequest) -> tuple[OpenModel, JobWindows]:
    job = find_job(app, request)
    opened = open_trace_model(app, cluster=job["cluster"][0])
    return opened, read_job_windows(app, request, job, opened)


def _place(windows: "Windows", row: int) -> dict[str, Any]:
    index = windows.index.row(row, named=True)
    return {"node": index["node"], "cpu": index["cpu"], "at": format_instant(index["at"])}


def _error(error: float, opened: OpenModel) -> dict[str, Any]:
    return {"error": error, "unusual": error > opened.threshold}
