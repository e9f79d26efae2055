"""The report on the profiles of a log: the profiles, their tables and charts, as one JSON document."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.charts.profiles import profile_charts
from tocsin.charts.render import write_charts
from tocsin.core.outcomes import Target
from tocsin.profiles.profiles import Profiles
from tocsin.profiles.tables import correlations, tables

__all__ = ["report", "write_report"]


def report(jobs: pl.DataFrame, found: Profiles, target: Target, zone: str) -> dict[str, Any]:
    numbers = found.numbers(jobs)
    names, values = correlations(jobs, numbers, target, zone)
    return {
        **found.to_json(),
        "jobs": jobs.height,
        "target": str(target),
        "tables": tables(jobs, numbers, target),
        "correlations": {"names": names, "values": [[_finite(v) for v in row] for row in values.tolist()]},
    }


def write_report(folder: Path, document: dict[str, Any]) -> list[Path]:
    """Write `profiles.json` and a chart for each part; returns the files."""
    charts = write_charts(folder, profile_charts(document))
    path = folder / "profiles.json"
    path.write_text(json.dumps(document, allow_nan=False) + "\n", "utf-8")
    return [path, *charts]


def _finite(value: float) -> float | None:
    return round(value, 6) if value == value else None
