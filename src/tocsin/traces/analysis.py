"""The report on how traces should be sampled: spectra, window length, and separation of kinds by sampling interval."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tocsin.charts.render import write_charts
from tocsin.charts.traces import sampling_charts
from tocsin.core.errors import InputError
from tocsin.traces.plane import Plane
from tocsin.traces.separability import DRAWS, cut_waveforms, silhouettes
from tocsin.traces.series import Series, series_of
from tocsin.traces.spectra import recommended_window, spectrum_of

__all__ = ["analyse", "write_analysis"]

_MOST_POINTS = 100  # of a kind in the scatter plot
_MOST_KINDS = 24


def analyse(
    samples: pl.DataFrame,
    *,
    length: int = 100,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """From CPU_SAMPLES with the column `kind`; `length` is the window whose sampling is compared, in seconds."""
    by_kind: dict[str, list[Series]] = {}
    for each in series_of(samples):
        by_kind.setdefault(each.kind, []).append(each)
    if not by_kind:
        raise InputError("there are no samples of known jobs to analyse")
    largest = sorted(by_kind, key=lambda kind: (-sum(len(each.values) for each in by_kind[kind]), kind))
    kinds, left_out = sorted(largest[:_MOST_KINDS]), largest[_MOST_KINDS:]
    spectra = []
    for done, kind in enumerate(kinds):
        if progress:
            progress(done, len(kinds) + 1)
        spectra.append(spectrum_of(kind, by_kind[kind]))
    if progress:
        progress(len(kinds), len(kinds) + 1)
    return {
        "seconds": sum(each.seconds for each in spectra),
        "kinds": [each.to_json() for each in spectra],
        "left_out": left_out,
        "window": recommended_window(spectra),
        "separation": _separation([each for kind in kinds for each in by_kind[kind]], length, seed),
    }


def _separation(series: list[Series], length: int, seed: int) -> dict[str, Any]:
    """Silhouettes by interval and the waveforms in the plane; the reason if there are too few waveforms."""
    try:
        waveforms, kinds, few = cut_waveforms(series, length, seed)
    except InputError as error:
        return {"length": length, "missing": str(error)}
    plane = Plane.fit(waveforms)
    names = np.asarray(kinds)
    rows = np.concatenate([np.flatnonzero(names == kind)[:_MOST_POINTS] for kind in np.unique(names)])
    scores = silhouettes(waveforms, kinds, seed=seed)
    return {
        "length": length,
        "draws": DRAWS,
        "waveforms": {str(kind): int((names == kind).sum()) for kind in np.unique(names)},
        "too_few": few,
        "silhouette": [each.to_json() for each in scores],
        "best": max(scores, key=lambda each: each.mean).to_json(),
        "explained": [round(share, 4) for share in plane.explained],
        "points": [
            {"kind": str(names[row]), "x": round(float(x), 4), "y": round(float(y), 4)}
            for row, (x, y) in zip(rows, plane.project(waveforms[rows]), strict=True)
        ],
    }


def write_analysis(folder: Path, report: dict[str, Any]) -> list[Path]:
    """Write `sampling.json` and the charts; returns the files."""
    charts = write_charts(folder, sampling_charts(report))
    path = folder / "sampling.json"
    path.write_text(json.dumps(report, allow_nan=False) + "\n", "utf-8")
    return [path, *charts]
