"""`traces analyse`: how long windows of traces should be, and how often to sample."""

from pathlib import Path
from typing import Any

from tocsin.app.app import App
from tocsin.app.traces_request import TraceRequest
from tocsin.app.traces_samples import read_samples_by_kind

__all__ = ["analyse_traces"]


def analyse_traces(
    app: App, request: TraceRequest, length: int, seed: int, out: Path | None
) -> tuple[dict[str, Any], list[Path]]:
    """The report, and the files that were written to the folder `out`."""
    from tocsin.charts.render import require_renderer

    if out:
        require_renderer()  # before the work
    samples = read_samples_by_kind(app, request).with_kinds()
    from tocsin.traces.analysis import analyse, write_analysis

    report = analyse(
        samples, length=length, seed=seed, progress=lambda done, of: app.progress("kinds of jobs", done, of)
    )
    return report, write_analysis(out, report) if out else []
