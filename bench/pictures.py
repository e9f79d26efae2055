"""The charts of docs/benchmarks.md, made from the results."""

import re
from pathlib import Path
from typing import Any

from tocsin.charts.render import write_charts
from tocsin.charts.spec import ACCENT, COLOURS, INK, Spec, chart, share

__all__ = ["draw"]

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
_SPLIT = "trained on the first 80 % by time, tested on the last 20 %"
_CLASSIFIERS = ("tocsin", "keyword matching", "ssdeep + RF", "lexical + LR balanced", "MiniLM + LR balanced")
"""Chosen by hand, to show each family of classifiers once; docs/benchmarks.md has all rows."""


def draw(results: dict[str, Any]) -> None:
    if "failure" in results:
        logs = {
            _short(name): row["submit"]
            for name, row in results["failure"]["logs"].items()
            if "tocsin" in row.get("submit", {})
        }
        write_charts(
            FOLDER, {"failure-auc": failure_auc(logs), "failure-precision-recall": precision_recall(logs)}
        )
    if "workload" in results:
        found = results["workload"]
        write_charts(
            FOLDER,
            {
                "workload-f1": macro_f1(found["script_ai"]),
                "workload-obfuscation": obfuscation(found["disguise"]),
            },
        )


def failure_auc(logs: dict[str, Any]) -> Spec:
    """The area under the ROC curve on each log with its interval, beside that of the published recipe."""
    contenders = {"tocsin": "tocsin", "published": "published recipe"}
    values = [
        {"log": log, "who": label, **dict(zip(("auc", "low", "high"), row[who]["auc"], strict=True))}
        for log, row in logs.items()
        for who, label in contenders.items()
    ]
    labels = list(contenders.values())
    shared = {
        "y": _rows("log", list(logs)),
        "yOffset": {"field": "who", "type": "nominal", "sort": labels, "scale": {"padding": 0.9}},
        "color": _colours("who", labels, [COLOURS[0], ACCENT]),
    }
    x: Spec = {
        "type": "quantitative", "title": "area under the ROC curve", "scale": {"zero": False}, "axis": {"tickCount": 8}
    }  # fmt: skip
    return chart(
        "Failure prediction at submission",
        f"Area under the ROC curve with 95 % interval, {_SPLIT}",
        width=460,
        height=36 * len(logs),
        data={"values": values},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.45},
                "encoding": {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {**shared, "x": {**x, "field": "auc"}},
            },
        ],
    )


def precision_recall(logs: dict[str, Any]) -> Spec:
    """One line for each log; the results hold precision at evenly spaced recalls from 0 to 1."""
    values = [
        {"log": _named(log, row), "recall": round(n / (len(points) - 1), 4), "precision": precision}
        for log, row in logs.items()
        if (points := row.get("precision_by_recall"))
        for n, precision in enumerate(points)
    ]
    return chart(
        "Unsuccessful jobs predicted at submission",
        f"Precision and recall on each log, {_SPLIT}",
        width=560,
        height=360,
        data={"values": values},
        mark="line",
        encoding={
            "x": share("recall", "recall: unsuccessful jobs that raise an alarm"),
            "y": share("precision", "precision: alarms that are right"),
            "color": {
                "field": "log",
                "type": "nominal",
                "sort": [_named(log, row) for log, row in logs.items()],
                "legend": {"columns": 2, "symbolType": "stroke"},
            },
            "order": {"field": "recall", "type": "quantitative"},
        },
    )


def macro_f1(classifiers: dict[str, Any]) -> Spec:
    """tocsin beside the published classifiers."""
    values = [
        {"who": name, "f1": classifiers[name]["macro_f1"]} for name in _CLASSIFIERS if name in classifiers
    ]
    encoding = {
        "y": _rows("who", [row["who"] for row in values]),
        "x": share("f1", "macro-F1") | {"axis": {"tickCount": 5}},
        "color": {"condition": {"test": "datum.who === 'tocsin'", "value": COLOURS[0]}, "value": "#b8c0c8"},
    }
    text = {"field": "f1", "type": "quantitative", "format": ".2f"}
    return chart(
        "Is this script an AI workload?",
        f"SCRIPT-AI: {classifiers['split']}",
        width=400,
        height=30 * len(values),
        data={"values": values},
        layer=[
            {"mark": {"type": "bar", "height": {"band": 0.7}}, "encoding": encoding},
            {
                "mark": {"type": "text", "align": "left", "dx": 5},
                "encoding": {"x": encoding["x"], "y": encoding["y"], "text": text},
            },
        ],
    )


def obfuscation(sets: dict[str, Any]) -> Spec:
    """Macro-F1 by the share of lines that are replaced by random strings."""
    names = {"script-ai": "SCRIPT-AI", "jobspec": "jobspec"}
    values = [
        {"scripts": names.get(name, name), "share": float(part), "f1": row["macro_f1"]}
        for name, curve in sets.items()
        for part, row in curve.items()
    ]
    return chart(
        "AI scripts with obfuscated lines",
        "Macro-F1 when lines are replaced by random strings that were not used in training",
        height=240,
        data={"values": values},
        mark={"type": "line", "point": {"size": 40}},
        encoding={
            "x": share("share", "share of lines replaced"),
            "y": share("f1", "macro-F1") | {"scale": {"domain": [0.5, 1]}, "axis": {"tickCount": 5}},
            "color": _colours("scripts", sorted({row["scripts"] for row in values}), list(COLOURS)),
        },
    )


def _rows(field: str, names: list[str]) -> Spec:
    axis = {"labelColor": INK, "labelLimit": 300, "ticks": False}
    return {"field": field, "type": "nominal", "sort": names, "title": None, "axis": axis}


def _colours(field: str, names: list[str], colours: list[str]) -> Spec:
    scale = {"domain": names, "range": colours[: len(names)]}
    return {"field": field, "type": "nominal", "scale": scale, "legend": {"symbolOpacity": 1}}


def _named(log: str, row: dict[str, Any]) -> str:
    return f"{log} ({row['failing']:.0%} unsuccessful)"


def _short(log: str) -> str:
    """The name of a log without the version of its file: KTH-SP2-1996-2.1-cln is KTH-SP2-1996."""
    return re.sub(r"(-\d{1,2}(\.\d)?)?(-cln)?$", "", log)
