"""The parts that all charts share: size, fonts, colours, axes and layers."""

from typing import Any

__all__ = ["ACCENT", "COLOURS", "INK", "SOFT", "Spec", "amount", "chart", "dashed", "named_point", "share"]

Spec = dict[str, Any]
"""A Vega-Lite v5 specification, or a part of one."""

# The colours of Okabe and Ito, which colour-blind people can tell apart; the yellow is darkened to be visible on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0518c", "#8a6d00", "#56a8d8", "#6b4fbb", "#57606a")
ACCENT, INK, SOFT, _GRID = COLOURS[1], "#1b1f24", "#57606a", "#e3e7eb"

# vl-convert includes Liberation Sans and measures text with it, so that a machine without fonts draws the same chart;
# Arial and Helvetica have the same widths.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_CONFIG: Spec = {
    "font": _FONT,
    "background": "white",
    "padding": 16,
    "view": {"stroke": None},
    "mark": {"color": COLOURS[0]},
    "range": {"category": list(COLOURS)},
    "title": {
        "anchor": "start", "frame": "bounds", "color": INK, "fontSize": 15, "offset": 14,
        "subtitleColor": SOFT, "subtitleFontSize": 12, "subtitlePadding": 5,
    },
    "axis": {
        "domain": False, "gridColor": _GRID, "tickColor": _GRID, "labelColor": SOFT, "labelFontSize": 11,
        "labelPadding": 5, "labelFlush": False, "titleColor": SOFT, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 10,
    },
    "legend": {
        "orient": "bottom", "labelColor": INK, "labelFontSize": 11, "labelLimit": 400, "symbolStrokeWidth": 3,
        "title": None,
    },
    "line": {"strokeWidth": 2, "strokeJoin": "round", "strokeCap": "round"},
    "text": {"color": INK, "fontSize": 11},
}  # fmt: skip


def chart(title: str, subtitle: str = "", *, width: int = 480, height: int = 300, **body: Any) -> Spec:
    """A whole specification; `body` is its mark and encoding, or its layers."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": f"{title}. {subtitle}".rstrip(". ") + ".",
        "title": {"text": title, "subtitle": subtitle} if subtitle else title,
        "width": width,
        "height": height,
        **body,
        "config": _CONFIG,
    }


def share(field: str, title: str) -> Spec:
    """The encoding of a share between 0 and 100 %."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, 1]},
        "axis": {"format": ".0%", "tickCount": 5},
    }


def amount(field: str, title: str, *, zero: bool = True, **axis: Any) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": zero, "nice": True},
        "axis": {"tickCount": 6, **axis},
    }


def dashed(
    start: tuple[float, float], end: tuple[float, float], x: str, y: str, label: str = ""
) -> list[Spec]:
    """A dashed reference line; its label is at its end, below it if there is room."""
    points = [{x: at[0], y: at[1]} for at in (start, end)]
    encoding = {name: {"field": field, "type": "quantitative"} for name, field in (("x", x), ("y", y))}
    line = {
        "data": {"values": points},
        "mark": {"type": "line", "color": SOFT, "strokeDash": [4, 4], "strokeWidth": 1.2},
        "encoding": encoding,
    }
    below = end[1] > 0.06
    text = {
        "data": {"values": points[1:]},
        "mark": {
            "type": "text",
            "text": label,
            "align": "right",
            "baseline": "top" if below else "bottom",
            "dy": 5 if below else -5,
            "color": SOFT,
        },
        "encoding": encoding,
    }
    return [line, text] if label else [line]


def named_point(label: str, at: tuple[float, float], x: str, y: str, *, below: bool = False) -> list[Spec]:
    """One highlighted point with a label; on an axis of shares, never beyond the right edge."""
    left = 0.7 < at[0] <= 1
    shared = {
        "data": {"values": [{x: at[0], y: at[1]}]},
        "encoding": {"x": {"field": x, "type": "quantitative"}, "y": {"field": y, "type": "quantitative"}},
    }
    dot = {
        "type": "point",
        "filled": True,
        "size": 90,
        "color": ACCENT,
        "stroke": "white",
        "strokeWidth": 1.5,
        "opacity": 1,
    }
    text = {
        "type": "text",
        "text": label,
        "align": "right" if left else "left",
        "dx": -10 if left else 10,
        "dy": 12 if below else -10,
        "fontWeight": "bold",
        "color": ACCENT,
    }
    return [{**shared, "mark": dot}, {**shared, "mark": text}]
