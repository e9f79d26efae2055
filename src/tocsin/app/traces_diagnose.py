"""`traces embed` and `traces diagnose`: embeddings and errors of kinds of jobs by the trace model."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.traces_models import OpenModel, open_trace_model
from tocsin.app.traces_regions import current_regions
from tocsin.app.traces_request import TraceRequest
from tocsin.app.traces_samples import read_samples_by_kind
from tocsin.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tocsin.traces.diagnosis import Embedded

__all__ = ["DiagnoseRequest", "diagnose_kinds", "embed_traces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseRequest:
    """How kinds of jobs are analysed."""

    model: str = "champion"
    bad: list[str]
    """Kinds that count as bad, in addition to those labelled or confirmed as bad."""
    kind: str | None = None
    """The kind whose I/O waits are drawn."""
    cpus: tuple[str, ...] = ()
    """CPUs to draw, as NODE:CPU."""
    out: Path | None = None


def embed_traces(app: App, request: TraceRequest, model: str, out: Path) -> dict[str, Any]:
    """Write the embedding of each window to a Parquet file; returns a summary."""
    opened, found = _embedded(app, request, model, [])
    frame = found.frame()
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(f".new-{out.name}")
    try:
        frame.write_parquet(part, compression="zstd", metadata={"model": opened.version})
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return {
        "file": str(out),
        "model": opened.version,
        "architecture": opened.model.architecture,
        "windows": frame.height,
        "size": int(found.scores.embedding.shape[1]),
        "kinds": {kind: int(found.of(kind).sum()) for kind in found.names},
    }


def diagnose_kinds(
    app: App, request: TraceRequest, how: DiagnoseRequest
) -> tuple[dict[str, Any], list[Path]]:
    """Errors, embeddings and distances of all kinds of jobs, and the files written."""
    from tocsin.charts.render import require_renderer
    from tocsin.traces.diagnosis import decays, errors_by_kind, in_plane, reconstructions, typical

    if how.out:
        require_renderer()  # fail before the work
    opened, found = _embedded(app, request, how.model, how.bad)
    centroids = _centroids(app, opened, found, labelled=request.folder is not None)
    rows = decays(found, centroids)
    shown = [_of_cpu(found, name) for name in how.cpus] or typical(found)
    report = {
        "model": opened.version,
        "architecture": opened.model.architecture,
        "windows": len(found.windows),
        "threshold": float(f"{opened.threshold:.6g}"),
        "kinds": errors_by_kind(found),
        "plane": in_plane(found),
        "distances": [{name: value for name, value in row.items() if name != "points"} for row in rows],
        "shown_decay": _shown(rows, found, how.kind),
        "reconstructions": reconstructions(opened.model, found, shown),
    }
    return report, _write(how.out, report) if how.out else []


def _embedded(app: App, request: TraceRequest, version: str, bad: list[str]) -> "tuple[OpenModel, Embedded]":
    import polars as pl

    from tocsin.traces.diagnosis import embed

    samples = read_samples_by_kind(app, request)
    opened = open_trace_model(app, version, samples.cluster)
    settings = app.settings.traces
    windows, about = samples.windows(opened.model.length, settings.stride, settings.interval)
    known = set(about["kind"].unique())
    for kind in bad:
        if kind not in known:
            raise InputError(f'no kind "{kind}" in these traces; kinds: {", ".join(sorted(known))}')
    about = about.with_columns(normal=pl.when(pl.col("kind").is_in(bad)).then(False).otherwise("normal"))
    return opened, embed(opened.model, windows, about)


def _centroids(
    app: App, opened: OpenModel, found: "Embedded", *, labelled: bool
) -> "dict[str, NDArray[np.float64]]":
    """The centroids of bad kinds: from the labels of a campaign, else from the regions that people confirmed."""
    from tocsin.traces.diagnosis import bad_centroids

    if labelled:
        return bad_centroids(found)
    regions, stale = current_regions(app, opened)
    for each, why in stale:
        app.notify(f'warning: region {each.number} "{each.name}" is stale and left out: {why}')
    return {f"{region.name} ({region.number})": region.shape.centroid for region in regions} or bad_centroids(
        found
    )


def _shown(rows: list[dict[str, Any]], found: "Embedded", kind: str | None) -> dict[str, Any] | None:
    """The pair to draw: the bad kind that waits longest for I/O, and the normal kind whose waits differ most."""
    from tocsin.traces.diagnosis import worst_iowait

    if kind is not None and kind not in {row["kind"] for row in rows}:
        raise InputError(f'no normal kind "{kind}" to compare with; kinds: {", ".join(found.names)}')
    waits = worst_iowait(found.windows)
    mean = {
        bad: float(waits[found.of(bad)].mean()) if found.of(bad).any() else 0.0
        for bad in (r["bad"] for r in rows)
    }
    wanted = [row for row in rows if kind in (None, row["kind"])]
    return max(wanted, key=lambda row: (mean[row["bad"]], row["iowait_range"]), default=None)


def _of_cpu(found: "Embedded", name: str) -> int:
    """The index of this CPU's window with the largest error."""
    import numpy as np

    node, _, cpu = name.rpartition(":")
    index = found.windows.index
    number = int(cpu) if cpu.isdecimal() else -1
    rows = np.flatnonzero(((index["node"] == node) & (index["cpu"] == number)).to_numpy())
    if not len(rows):
        raise InputError(f'no window of the CPU "{name}"; write NODE:CPU, such as {index["node"][0]}:0')
    return int(rows[np.argmax(found.scores.error[rows])])


def _write(folder: Path, report: dict[str, Any]) -> list[Path]:
    from tocsin.charts.render import write_charts
    from tocsin.charts.traces import diagnosis_charts

    charts = write_charts(folder, diagnosis_charts(report))
    path = folder / "diagnosis.json"
    path.write_text(json.dumps(report, allow_nan=False) + "\n", "utf-8")
    return [path, *charts]
