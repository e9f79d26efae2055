"""Charts of the kinds of jobs: how many there are, how they end, and correlations of their fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin.charts.spec import COLOURS, INK, Spec, amount, chart, named_point, share

__all__ = ["bic", "correlations", "distortion", "outcomes", "profile_charts"]

_OUTCOMES = {
    "completed": "#009e73", "failed": "#d55e00", "timeout": "#e69f00", "out_of_memory": "#b0518c",
    "node_fail": "#6b4fbb", "boot_fail": "#8f7bd1", "deadline": "#8a6d00", "cancelled": "#8c959f",
    "preempted": "#56a8d8", "requeued": "#0072b2", "revoked": "#b8c0c8", "unknown": "#d8dee4",
}  # fmt: skip
_MOST_FIGURES = 24
"""With more columns, the numbers in the cells of a heat map would be unreadable."""


def profile_charts(report: Mapping[str, Any]) -> dict[str, Spec]:
    """All charts of a report of `profiles.report`, by name."""
    curves, table = report["curves"], report["correlations"]
    names = [f"{number}: {profile['name']}" for number, profile in enumerate(report["profiles"], start=1)]
    ended = {names[row["profile"]]: row["by_outcome"] for row in report["tables"]["outcomes"]}
    return {
        "elbow": distortion(curves["numbers"], curves["distortion"], curves["elbow"]),
        "bic": bic(curves["numbers"], curves["bic"], curves["bic_knee"]),
        "outcomes": outcomes(ended),
        "correlations": correlations(table["names"], table["values"]),
    }


def distortion(numbers: Sequence[int], values: Sequence[float], chosen: int) -> Spec:
    y = share("value", "within-cluster sum of squares, relative to one profile")
    return _by_number("Elbow: distortion by number of profiles (K-means)", numbers, values, chosen, y)


def bic(numbers: Sequence[int], values: Sequence[float], chosen: int) -> Spec:
    y = amount("value", "BIC (lower is better)", zero=False, format="~s")
    return _by_number("BIC by number of profiles (Gaussian mixture)", numbers, values, chosen, y)


def _by_number(title: str, numbers: Sequence[int], values: Sequence[float], chosen: int, y: Spec) -> Spec:
    points = [{"profiles": number, "value": value} for number, value in zip(numbers, values, strict=True)]
    line = {
        "data": {"values": points},
        "mark": {"type": "line", "point": {"size": 45}},
        "encoding": {"x": amount("profiles", "number of profiles", zero=False, values=list(numbers)), "y": y},
    }
    bend = (chosen, values[numbers.index(chosen)])
    mark = named_point(f"knee at {chosen}", bend, "profiles", "value")
    return chart(title, layer=[line, *mark])


def outcomes(profiles: Mapping[str, Mapping[str, int]]) -> Spec:
    """How the jobs of each profile ended, as shares: a bar for each profile, a colour for each outcome."""
    seen = [name for name in _OUTCOMES if any(counts.get(name) for counts in profiles.values())]
    values = [
        {"profile": profile, "outcome": name.replace("_", " "), "place": place, "jobs": counts[name]}
        for profile, counts in profiles.items()
        for place, name in enumerate(seen)
        if counts.get(name)
    ]
    colour = {
        "field": "outcome",
        "type": "nominal",
        "scale": {
            "domain": [name.replace("_", " ") for name in seen],
            "range": [_OUTCOMES[name] for name in seen],
        },
    }
    return chart(
        "How the jobs of each profile ended",
        width=420,
        height=34 * max(1, len(profiles)),
        data={"values": values},
        mark={"type": "bar", "height": {"band": 0.7}},
        encoding={
            "y": {
                "field": "profile",
                "type": "nominal",
                "sort": list(profiles),
                "title": None,
                "axis": {"labelLimit": 420, "labelColor": INK, "ticks": False},
            },
            "x": amount("jobs", "share of its finished jobs", format=".0%", tickCount=5)
            | {"stack": "normalize"},
            "color": colour,
            "order": {"field": "place", "type": "quantitative"},
        },
    )


def correlations(names: Sequence[str], values: Sequence[Sequence[float | None]]) -> Spec:
    """Spearman's correlation of each pair as a heat map: blue below zero, red above, grey if unknown."""
    cells = [
        {"row": row, "column": column, "value": values[i][j]}
        for i, row in enumerate(names)
        for j, column in enumerate(names)
    ]
    axis = {"type": "nominal", "title": None, "sort": list(names)}
    looks = {"grid": False, "ticks": False, "labelLimit": 220, "labelColor": INK}
    place = {
        "x": {"field": "column", **axis, "axis": {**looks, "labelAngle": -45}},
        "y": {"field": "row", **axis, "axis": looks},
    }
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [-1, 0, 1], "range": [COLOURS[0], "#f7f7f7", "#b2281e"]},
        "legend": {
            "orient": "right",
            "values": [-1, -0.5, 0, 0.5, 1],
            "gradientLength": 160,
            "format": ".1f",
        },
    }
    known = [{"filter": "isValid(datum.value)"}]
    cell: Spec = {"type": "rect", "stroke": "white"}
    layers: list[Spec] = [
        {"mark": cell | {"color": "#c9d1d9"}, "encoding": place},
        {"transform": known, "mark": cell, "encoding": {**place, "color": colour}},
    ]
    if len(names) <= _MOST_FIGURES:
        figure = {"field": "value", "type": "quantitative", "format": ".2f"}
        ink = {"condition": {"test": "abs(datum.value) > 0.6", "value": "white"}, "value": INK}
        text = {"type": "text", "fontSize": 10}
        layers.append({"transform": known, "mark": text, "encoding": {**place, "text": figure, "color": ink}})
    side = 36 * max(1, len(names))
    return chart(
        "What goes together in finished jobs",
        "Spearman correlation, from −1 to 1",
        width=side,
        height=side,
        data={"values": cells},
        layer=layers,
    )
