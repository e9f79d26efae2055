"""Charts of a model's predictions: precision and recall, ROC, calibration, and the scores of both classes."""

from collections.abc import Mapping
from typing import Any

from tocsin.charts.spec import ACCENT, COLOURS, SOFT, Spec, amount, chart, dashed, named_point, share

__all__ = ["calibration", "curve_charts", "precision_recall", "roc", "scores"]

Curves = Mapping[str, Any]
"""The result of `models.curves.curves`."""


def curve_charts(curves: Curves, subtitle: str) -> dict[str, Spec]:
    """All charts of one model's predictions, by name."""
    drawn = {
        "precision-recall": precision_recall,
        "roc": roc,
        "calibration": calibration,
        "scores": scores,
    }
    return {name: draw(curves, subtitle) for name, draw in drawn.items()}


def precision_recall(curves: Curves, subtitle: str) -> Spec:
    base = curves["positive"] / curves["rows"] if curves["rows"] else 0.0
    return _curve(
        f"Precision and recall: average precision {_figure(curves['pr']['average_precision'])}",
        subtitle,
        ("recall", "recall: failing jobs that raise an alarm"),
        ("precision", "precision: alarms that are right"),
        curves["pr"],
        dashed((0, base), (1, base), "recall", "precision", f"alarm for every job: {base:.1%}"),
        curves,
    )


def roc(curves: Curves, subtitle: str) -> Spec:
    return _curve(
        f"ROC: area under the curve {_figure(curves['roc']['auc'])}",
        subtitle,
        ("false_positive_rate", "false-positive rate: good jobs that raise an alarm"),
        ("recall", "recall: failing jobs that raise an alarm"),
        curves["roc"],
        dashed((0, 0), (1, 1), "false_positive_rate", "recall"),
        curves,
        below=True,
    )


def calibration(curves: Curves, subtitle: str) -> Spec:
    """Predicted against observed, with the 95 % interval of each bin."""
    table = curves["calibration"]
    values = _rows(table, "predicted", "observed", "low", "high", "rows")
    x = share("predicted", "predicted probability of failure (mean of a bin)")
    y = share("observed", "share that failed, with its 95 % interval")
    layers = [
        *dashed((0, 0), (1, 1), "predicted", "observed"),
        {
            "mark": {"type": "area", "opacity": 0.18},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {"mark": {"type": "line", "point": {"size": 45}}, "encoding": {"x": x, "y": y}},
    ]
    title = f"Calibration: error {_figure(table['error'])}"
    return chart(title, subtitle, data={"values": values}, layer=layers)


def scores(curves: Curves, subtitle: str) -> Spec:
    """The distribution of the predicted probabilities of failing and of good jobs."""
    table, failing = curves["confidence"], curves["positive"]
    counts = {
        f"good jobs ({curves['rows'] - failing:,})": table["negative"],
        f"failing jobs ({failing:,})": table["positive"],
    }
    edges = table["edges"]
    values = [
        {"from": low, "to": high, "share": round(count / (sum(bins) or 1), 6), "class": name}
        for name, bins in counts.items()
        for low, high, count in zip(edges, edges[1:], bins, strict=False)
    ]
    bars = {
        "mark": {"type": "bar", "opacity": 0.6, "binSpacing": 1},
        "encoding": {
            "x": share("from", "predicted probability of failure") | {"bin": "binned"},
            "x2": {"field": "to"},
            "y": amount("share", "share of the class", format=".0%") | {"stack": None},
            "color": {
                "field": "class",
                "type": "nominal",
                "scale": {"domain": list(counts), "range": [COLOURS[0], ACCENT]},
            },
        },
    }
    left = curves["threshold"] > 0.7
    side = {"align": "right", "dx": -6} if left else {"align": "left", "dx": 6}
    at = {"data": {"values": [{}]}, "encoding": {"x": {"datum": curves["threshold"]}}}
    rule = {**at, "mark": {"type": "rule", "color": SOFT, "strokeDash": [4, 4]}}
    text = {**at, "mark": {"type": "text", "text": _threshold(curves), "y": 4, "color": SOFT, **side}}
    return chart(
        "Predicted probabilities of both classes",
        subtitle,
        data={"values": values},
        layer=[bars, rule, text],
    )


def _curve(
    title: str,
    subtitle: str,
    across: tuple[str, str],
    up: tuple[str, str],
    points: Curves,
    guide: list[Spec],
    curves: Curves,
    *,
    below: bool = False,
) -> Spec:
    line = {
        "data": {"values": _rows(points, across[0], up[0])},
        "mark": {"type": "line", "clip": True},
        "encoding": {
            "x": share(*across),
            "y": share(*up),
            "order": {"field": across[0], "type": "quantitative"},
        },
    }
    at = curves["at_threshold"]
    x, y = at[across[0]], at[up[0]]
    if x is None or y is None:
        return chart(title, subtitle, layer=[line, *guide])
    point = (round(x, 6), round(y, 6))
    mark = named_point(_threshold(curves), point, across[0], up[0], below=below)
    return chart(title, subtitle, layer=[line, *guide, *mark])


def _rows(columns: Curves, *names: str) -> list[dict[str, float]]:
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)
    ]


def _threshold(curves: Curves) -> str:
    return f"threshold {curves['threshold']:.3g}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
