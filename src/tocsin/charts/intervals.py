"""Figures of several contenders side by side, each with its interval."""

from collections.abc import Mapping, Sequence

from tocsin.charts.spec import ACCENT, COLOURS, INK, Spec, chart

__all__ = ["intervals"]


def intervals(
    rows: Mapping[str, Mapping[str, Sequence[float | None]]], title: str, subtitle: str, label: str
) -> Spec:
    """One row for each name; in it a dot for each contender, with a bar from the low to the high end of its interval.

    A figure is its value, low end and high end; the ends may be None.
    """
    contenders = list(dict.fromkeys(name for row in rows.values() for name in row))
    values = [
        {"row": row, "who": who, "value": value, "low": low, "high": high}
        for row, figures in rows.items()
        for who, (value, low, high) in figures.items()
        if value is not None
    ]
    shared = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": list(rows),
            "title": None,
            "axis": {"labelColor": INK, "labelLimit": 300, "ticks": False, "grid": True},
        },
        "yOffset": {"field": "who", "type": "nominal", "sort": contenders, "scale": {"padding": 0.9}},
        "color": {
            "field": "who",
            "type": "nominal",
            "scale": {"domain": contenders, "range": [COLOURS[0], ACCENT, *COLOURS[2:]][: len(contenders)]},
            "legend": {"symbolOpacity": 1},
        },
    }
    x: Spec = {
        "type": "quantitative",
        "title": label,
        "scale": {"zero": False, "nice": True},
        "axis": {"tickCount": 8},
    }
    return chart(
        title,
        subtitle,
        width=460,
        height=36 * max(1, len(rows)),
        data={"values": values},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.45},
                "encoding": {**shared, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {**shared, "x": {**x, "field": "value"}},
            },
        ],
    )
