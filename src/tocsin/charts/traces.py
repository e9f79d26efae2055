"""Traces: how kinds of jobs change over time, how well they are told apart, and what a model makes of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.charts.spec import ACCENT, COLOURS, INK, Spec, amount, chart

__all__ = ["sampling_charts", "scatter", "silhouette", "spectra"]

_SHAPES = ("circle", "square", "triangle-up", "diamond")
_WAYS = {"pick": "one second of each interval", "mean": "mean of each interval"}
_COLUMNS = 3


def sampling_charts(report: Mapping[str, Any]) -> dict[str, Spec]:
    """All charts of a report of `traces.analysis`, by name."""
    separation = report["separation"]
    charts = {"spectra": spectra(report["kinds"])}
    if "silhouette" in separation:
        title = f"Waveforms of {separation['length']} s at 1 Hz, two principal components"
        charts["silhouette"] = silhouette(separation)
        charts["waveforms"] = scatter(title, separation["points"], separation["explained"])
    return charts


def spectra(kinds: Sequence[Mapping[str, Any]]) -> Spec:
    """A small chart for each kind: its spectrum, and its lowest dominant frequency."""
    shown = [kind for kind in kinds if kind["segment"]]
    heads = {
        kind["kind"]: kind["kind"] + (f": {kind['period']:.3g} s" if kind["frequency"] else ": no peak")
        for kind in shown
    }
    lines = [
        {"kind": heads[kind["kind"]], "f": f, "power": max(power, 1e-8)}
        for kind in shown
        for f, power in zip(kind["spectrum"]["frequency"], kind["spectrum"]["power"], strict=True)
    ]
    marks = [{"kind": heads[kind["kind"]], "peak": kind["frequency"]} for kind in shown if kind["frequency"]]
    x = {**amount("f", "frequency in Hz", zero=False, format="~g"), "scale": {"type": "log"}}
    x["axis"] = {"values": [0.001, 0.01, 0.1, 0.5], "format": "~g"}
    y = {**amount("power", "power density", zero=False), "scale": {"type": "log"}}
    y["axis"] = {"format": "~e", "tickCount": 4}
    rule: Spec = {
        "transform": [{"filter": "isValid(datum.peak)"}],
        "mark": {"type": "rule", "color": ACCENT, "strokeWidth": 1.5, "strokeDash": [4, 3]},
        "encoding": {"x": {"field": "peak", "type": "quantitative"}},
    }
    line: Spec = {
        "transform": [{"filter": "isValid(datum.f)"}],
        "mark": {"type": "line", "strokeWidth": 1.2},
        "encoding": {"x": x, "y": y},
    }
    subtitle = "dashed: the lowest dominant frequency, with its period in the heading"
    return _faceted("Power spectra of kinds of jobs (Welch)", subtitle, lines + marks, [line, rule], "kind")


def silhouette(separation: Mapping[str, Any]) -> Spec:
    """The silhouette by sampling interval, with one standard deviation on either side."""
    values = [
        {
            "interval": row["interval"],
            "silhouette": row["mean"],
            "low": row["mean"] - row["deviation"],
            "high": row["mean"] + row["deviation"],
            "way": _WAYS[row["way"]],
        }
        for row in separation["silhouette"]
    ]
    intervals = sorted({row["interval"] for row in values})
    x = {
        **amount("interval", "sampling interval in seconds", zero=False),
        "scale": {"type": "log", "nice": False},
    }
    x["axis"] = {"values": intervals, "format": "d"}
    y = amount("silhouette", "silhouette: 1 is clear separation, 0 is overlap", zero=False, format=".2f")
    colour = {
        "field": "way",
        "type": "nominal",
        "scale": {"domain": list(_WAYS.values()), "range": list(COLOURS[:2])},
    }
    return chart(
        "How well kinds of jobs are told apart, by sampling interval",
        f"waveforms of {separation['length']} s, two principal components; mean ± standard deviation of "
        f"{separation['draws']} draws",
        data={"values": values},
        layer=[
            {
                "mark": {"type": "area", "opacity": 0.15},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {"mark": {"type": "line", "point": {"size": 45}}, "encoding": {"x": x, "y": y, "color": colour}},
        ],
    )


def scatter(
    title: str, points: Sequence[Mapping[str, Any]], explained: Sequence[float], subtitle: str = ""
) -> Spec:
    """Points of each kind in the plane of two principal components."""
    names = sorted({point["kind"] for point in points})
    colour, shape = _colour(names), _shape(names)
    place = {
        name: amount(name, f"component {number}: {share:.0%} of the variance", zero=False)
        for number, (name, share) in enumerate(zip("xy", explained, strict=True), start=1)
    }
    return chart(
        title,
        subtitle,
        width=440,
        height=340,
        data={"values": list(points)},
        mark={"type": "point", "filled": True, "size": 26, "opacity": 0.55},
        encoding={**place, "color": colour, "shape": shape},
    )


def _colour(names: Sequence[str]) -> Spec:
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(names))]
    legend = {"columns": 4, "symbolOpacity": 1, "symbolSize": 60}
    return {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(names), "range": colours},
        "legend": legend,
    }


def _shape(names: Sequence[str]) -> Spec:
    """Another shape where the colours begin again."""
    shapes = [_SHAPES[(place // len(COLOURS)) % len(_SHAPES)] for place in range(len(names))]
    return {"field": "kind", "type": "nominal", "scale": {"domain": list(names), "range": shapes}}


def _faceted(title: str, subtitle: str, values: Sequence[Spec], layers: Sequence[Spec], by: str) -> Spec:
    """Small charts side by side, one for each value of a field."""
    whole = chart(title, subtitle, data={"values": list(values)})
    header = {
        "title": None,
        "labelColor": INK,
        "labelFontSize": 12,
        "labelAnchor": "start",
        "labelPadding": 4,
    }
    small = {"width": 200, "height": 120, "layer": list(layers)}
    facet = {"field": by, "type": "nominal", "header": header, "sort": None}
    del whole["width"], whole["height"]
    return {**whole, "facet": facet, "columns": _COLUMNS, "spec": small}
