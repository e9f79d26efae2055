"""The charts of docs/benchmarks.md, drawn from the results: `python -m bench.pictures`."""

import json
import re
from pathlib import Path
from typing import Any

from tocsin.charts.curves import precision_recall_of
from tocsin.charts.intervals import intervals
from tocsin.charts.render import write_charts
from tocsin.charts.spec import Spec

__all__ = ["draw"]

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
_SPLIT = "First 80 % by time trains, last 20 % is predicted"


def draw(results: dict[str, Any]) -> None:
    if "failure" in results:
        write_charts(FOLDER, failure_charts(results["failure"]["logs"]))


def failure_charts(logs: dict[str, Any]) -> dict[str, Spec]:
    submit = {_short(name): row["submit"] for name, row in logs.items() if "tocsin" in row.get("submit", {})}
    curves = {
        f"{name} ({row['failing']:.0%} unsuccessful)": _points(row["precision_by_recall"])
        for name, row in submit.items()
        if "precision_by_recall" in row
    }
    areas = {
        name: {"tocsin": row["tocsin"]["auc"], "published recipe": row["published"]["auc"]}
        for name, row in submit.items()
    }
    return {
        "failure-precision-recall": precision_recall_of(
            curves, "Unsuccessful jobs predicted at submission", f"{_SPLIT}; one line per public log"
        ),
        "failure-auc": intervals(
            areas,
            "tocsin and the published recipe on public logs",
            f"At submission. {_SPLIT}; bars are 95 % intervals",
            "area under the ROC curve",
        ),
    }


def _points(precisions: list[float]) -> tuple[list[float], list[float]]:
    """Precision at evenly spaced recalls, from 0 to 1."""
    last = len(precisions) - 1
    return [round(n / last, 4) for n in range(last + 1)], precisions


def _short(log: str) -> str:
    """The name of a log without the version of its file: KTH-SP2-1996-2.1-cln is KTH-SP2-1996."""
    return re.sub(r"(-\d{1,2}(\.\d)?)?(-cln)?$", "", log)


if __name__ == "__main__":
    files = sorted((Path(__file__).parent / "results").glob("*.json"))
    draw({path.stem: json.loads(path.read_text()) for path in files})
