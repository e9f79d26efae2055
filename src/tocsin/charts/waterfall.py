"""A waterfall chart: what each reason adds to a risk or takes from it."""

from collections.abc import Sequence

from tocsin.charts.spec import ACCENT, COLOURS, INK, SOFT, Spec, chart

__all__ = ["waterfall"]

_REST, _RISK = "other features", "risk"
_LIMIT, _MOST_ROOM, _OF_A_LETTER = 480, 570, 6
"""Pixels for a text. A viewer without our font draws another one, up to 15% wider: room for it is kept on the left."""


def waterfall(
    title: str, risk: float, reasons: Sequence[tuple[str, float]], *, threshold: float | None = None
) -> Spec:
    """`reasons` are texts with their effects; the first bar is the rest of the risk."""
    at = risk - sum(effect for _, effect in reasons)
    bars = [{"text": _REST, "from": 0.0, "to": at, "shown": f"{at:.0%}", "kind": "sum"}]
    for text, effect in reasons:
        kind = "raises the risk" if effect > 0 else "lowers the risk"
        bars.append(
            {"text": text, "from": at, "to": at + effect, "shown": f"{effect * 100:+.0f}", "kind": kind}
        )
        at += effect
    bars.append({"text": _RISK, "from": 0.0, "to": risk, "shown": f"{risk:.0%}", "kind": "sum"})
    room = min(_MOST_ROOM, _OF_A_LETTER * max(len(text) for text in [_REST, *(text for text, _ in reasons)]))
    y = {
        "field": "text",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelLimit": _LIMIT, "minExtent": room, "labelColor": INK},
    }
    x = {"field": "from", "type": "quantitative", "title": "risk of failure", "axis": {"format": ".0%"},
         "scale": {"domain": [0, 1]}}  # fmt: skip
    kinds = {"raises the risk": ACCENT, "lowers the risk": COLOURS[0], "sum": SOFT}
    colour = {
        "field": "kind",
        "type": "nominal",
        "scale": {"domain": list(kinds), "range": list(kinds.values())},
        "legend": {"values": list(kinds)[:2]},
    }
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": 18},
            "encoding": {"y": y, "x": x, "x2": {"field": "to"}, "color": colour},
        },
        {
            "transform": [{"calculate": "max(datum.from, datum.to)", "as": "end"}],
            "mark": {"type": "text", "align": "left", "dx": 5},
            "encoding": {"y": y, "x": {**x, "field": "end"}, "text": {"field": "shown"}},
        },
    ]
    if threshold is not None:
        layers.append(
            {
                "data": {"values": [{"from": threshold}]},
                "mark": {"type": "rule", "color": SOFT, "strokeDash": [4, 4]},
                "encoding": {"x": x},
            }
        )
    subtitle = "" if threshold is None else f"alarm at {threshold:.0%} or more (dashed)"
    return chart(title, subtitle, height=34 * len(bars), data={"values": bars}, layer=layers)
