"""Charts of traces: how kinds of jobs change over time, how well they are separated, and their scores by a model."""

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.charts.spec import ACCENT, COLOURS, INK, SOFT, Spec, amount, chart, share

__all__ = [
    "diagnosis_charts",
    "errors",
    "iowait_by_distance",
    "reconstructions",
    "sampling_charts",
    "scatter",
    "silhouette",
    "spectra",
]

_SHAPES = ("circle", "square", "triangle-up", "diamond")
_WAYS = {"pick": "one second of each interval", "mean": "mean of each interval"}
# A label for each of a thousand points helps nobody and makes up four fifths of the file.
_POINT = {"type": "point", "filled": True, "size": 26, "opacity": 0.55, "aria": False}
_CLASSES = {False: "normal", True: "bad"}


def sampling_charts(report: Mapping[str, Any]) -> dict[str, Spec]:
    """All charts of a report of `traces.analysis`, by name."""
    separation = report["separation"]
    charts = {}
    if any(kind["segment"] for kind in report["kinds"]):
        charts["spectra"] = spectra(report["kinds"])
    if "silhouette" in separation:
        title = f"Waveforms of {separation['length']} s at 1 Hz, two principal components"
        charts["silhouette"] = silhouette(separation)
        charts["waveforms"] = scatter(title, separation["points"], separation["explained"])
    return charts


def diagnosis_charts(report: Mapping[str, Any]) -> dict[str, Spec]:
    """All charts of a report of `tocsin traces diagnose`, by name."""
    charts = {"errors": errors(report["kinds"], report["threshold"])}
    if plane := report.get("plane"):
        subtitle = "the components were fitted without the bad kinds"
        charts["embeddings"] = scatter("Embeddings of windows", plane["points"], plane["explained"], subtitle)
    if decay := report.get("shown_decay"):
        charts["iowait"] = iowait_by_distance(decay)
    if report["reconstructions"]:
        charts["reconstructions"] = reconstructions(report["reconstructions"])
    return charts


def errors(kinds: Sequence[Mapping[str, Any]], threshold: float | None) -> Spec:
    """The spread of reconstruction errors of each kind, bad kinds in another colour."""
    tiny = 1e-7  # zero has no place on a logarithmic scale
    names = ("low", "lower", "median", "upper", "high")
    values = [
        {
            "kind": kind["kind"],
            "class": _CLASSES[kind["bad"]],
            **{name: max(kind[name], tiny) for name in names},
        }
        for kind in kinds
    ]
    axis = {"labelColor": INK, "labelLimit": 240, "ticks": False}
    y = {"field": "kind", "type": "nominal", "sort": None, "title": None, "axis": axis}
    x = {**amount("low", "reconstruction error", zero=False), "scale": {"type": "log"}}
    x["axis"] = {"format": "~g", "tickCount": 5}
    colour = {
        "field": "class",
        "type": "nominal",
        "scale": {"domain": list(_CLASSES.values()), "range": [COLOURS[0], ACCENT]},
    }

    def span(first: str, last: str, width: float) -> Spec:
        ends = {"x": {**x, "field": first}, "x2": {"field": last}}
        return {"mark": {"type": "rule", "strokeWidth": width}, "encoding": {"y": y, **ends, "color": colour}}

    middle = {
        "mark": {"type": "tick", "color": "white", "thickness": 2, "size": 10},
        "encoding": {"y": y, "x": {**x, "field": "median"}},
    }
    layers = [span("low", "high", 2), span("lower", "upper", 10), middle]
    if threshold:
        rule = {"type": "rule", "color": SOFT, "strokeDash": [4, 4]}
        layers.append({"data": {"values": [{"low": threshold}]}, "mark": rule, "encoding": {"x": x}})
    return chart(
        "Reconstruction error of each kind of job",
        "thin: 5 to 95 % of the windows, thick: the middle half"
        + (", dashed: threshold" if threshold else ""),
        height=34 * max(1, len(values)),
        data={"values": values},
        layer=layers,
    )


def iowait_by_distance(decay: Mapping[str, Any]) -> Spec:
    """Each window of a normal kind: the worst wait for I/O against the distance from a bad kind."""
    correlation = decay["correlation"]
    shown = "unknown" if correlation is None else f"{correlation:.2f}"
    return chart(
        f"Windows of {decay['kind']}: worst wait for I/O, by distance from {decay['bad']}",
        f"rank correlation {shown}; below zero: the nearer to {decay['bad']}, the longer they wait",
        data={"values": list(decay["points"])},
        mark=_POINT,
        encoding={
            "x": amount(
                "distance", f"distance of the embedding from the centroid of {decay['bad']}", zero=False
            ),
            "y": share("iowait", "largest share of a second waiting for I/O"),
        },
    )


def reconstructions(shown: Sequence[Mapping[str, Any]]) -> Spec:
    """Windows as recorded and as reconstructed, one small chart each."""
    values = [
        {
            "window": f"{each['kind']}: {each['channel']} of {each['node']} CPU {each['cpu']} (error {each['error']:.2g})",
            "second": second,
            "share": round(float(value), 4),
            "line": line,
        }
        for each in shown
        for line in ("original", "reconstruction")
        for second, value in enumerate(each[line], start=1)
    ]
    layer = {
        "mark": {"type": "line", "strokeWidth": 1.4},
        "encoding": {
            "x": amount("second", "second of the window", tickCount=5),
            "y": share("share", "share of the CPU"),
            "color": {
                "field": "line",
                "type": "nominal",
                "scale": {"domain": ["original", "reconstruction"], "range": [COLOURS[0], ACCENT]},
            },
        },
    }
    title = "Windows as recorded, and as the model rebuilds them"
    return _faceted(
        title, "in the channel that differs most", values, [layer], "window", columns=2, width=300
    )


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
        "Separation of kinds of jobs, by sampling interval",
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
        name: amount(name, f"component {number}: {share:.1%} of the variance", zero=False)
        for number, (name, share) in enumerate(zip("xy", explained, strict=True), start=1)
    }
    return chart(
        title,
        subtitle,
        width=440,
        height=340,
        data={"values": list(points)},
        mark=_POINT,
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
    """Another shape when the colours repeat."""
    shapes = [_SHAPES[(place // len(COLOURS)) % len(_SHAPES)] for place in range(len(names))]
    return {"field": "kind", "type": "nominal", "scale": {"domain": list(names), "range": shapes}}


def _faceted(
    title: str,
    subtitle: str,
    values: Sequence[Spec],
    layers: Sequence[Spec],
    by: str,
    *,
    columns: int = 3,
    width: int = 200,
) -> Spec:
    """Small charts side by side, one for each value of a field."""
    whole = chart(title, subtitle, data={"values": list(values)})
    header = {
        "title": None,
        "labelColor": INK,
        "labelFontSize": 12,
        "labelAnchor": "start",
        "labelPadding": 4,
    }
    small = {"width": width, "height": 120, "layer": list(layers)}
    order = list(dict.fromkeys(value[by] for value in values))
    facet = {"field": by, "type": "nominal", "header": header, "sort": order}
    del whole["width"], whole["height"]
    return {**whole, "facet": facet, "columns": columns, "spec": small}
