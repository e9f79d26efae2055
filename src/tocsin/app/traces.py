"""`traces bench`: how well anomalies in public series are found."""

from pathlib import Path
from typing import Any

from tocsin.app.app import App

__all__ = ["bench"]


def bench(app: App, folder: Path, scores: Path | None = None) -> dict[str, Any]:
    """The figures of each method on each series of a folder and on average; with `scores`, each point's score."""
    import numpy as np

    from tocsin.core.errors import NotFound
    from tocsin.traces.public import METHODS, figures, read_folder

    if not folder.is_dir():
        raise NotFound(f"no folder {folder}")
    if scores:
        scores.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, dict[str, float | None]]] = {}
    total = len(list(folder.glob("*.npz")))
    for place, series in enumerate(read_folder(folder)):
        app.progress("series", place, total)
        found = {method: compute(series) for method, compute in METHODS.items()}
        files[series.name] = {method: figures(series.anomalous, values) for method, values in found.items()}
        if scores:
            np.savez_compressed(scores / f"{series.name}.npz", allow_pickle=False, **found)
    return {
        "files": files,
        "mean": {method: _mean([rows[method] for rows in files.values()]) for method in METHODS},
    }


def _mean(rows: list[dict[str, float | None]]) -> dict[str, float | None]:
    means: dict[str, float | None] = {}
    for name in rows[0]:
        values = [value for row in rows if (value := row[name]) is not None]
        means[name] = round(sum(values) / len(values), 4) if values else None
    return means
