"""Anomalies in public series of server metrics: the linear autoencoder over windows against PCA and isolation forest."""

import os
from pathlib import Path
from typing import Any

from tocsin.app.app import App
from tocsin.app.traces import bench

__all__ = ["run"]


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    report = bench(App(None, None, {}), folder / "traces")
    mean = {method: figures["auc_pr"] for method, figures in report["mean"].items()}
    rival = max(value for method, value in mean.items() if method != "tocsin")
    return {**report, "ratio": round(mean["tocsin"] / rival, 3)}
