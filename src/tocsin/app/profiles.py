"""Profiles of the jobs of a log or of the store, as a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.logs import LogRequest, read_jobs

if TYPE_CHECKING:
    from tocsin.profiles.clusters import Method
    from tocsin.profiles.columns import Kind

__all__ = ["profiles"]


def profiles(
    app: App, log: LogRequest, kind: "Kind", method: "Method", k: int | None = None, out: Path | None = None
) -> tuple[dict[str, Any], list[Path]]:
    """The report on `k` profiles (by default at the knee), and the files that were written to the folder `out`."""
    from tocsin.charts.render import require_renderer

    if out:
        require_renderer()  # fail before the minutes that a large log takes
    jobs = read_jobs(app, log)
    from tocsin.failure.labels import default_target
    from tocsin.profiles.profiles import Profiles
    from tocsin.profiles.report import report, write_report

    found = Profiles.fit(jobs, kind, method=method, number=k)
    document = report(jobs, found, default_target(jobs), app.zone(log.cluster, log.tz).key)
    return document, write_report(out, document) if out else []
