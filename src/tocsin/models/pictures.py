"""Small charts as SVG text: lines, histograms, bars, heat maps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin.models import svg
from tocsin.models.pictures_frame import SIDE, WIDTH, Frame, Points, Range, frame_of, legend

__all__ = ["Series", "bars", "heat_map", "histogram", "line_chart"]

Series = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Named series, each x and y."""

_BAR = 46.0
_FAR = 1e150
"""Beyond any figure of ours, and still small enough that differences are finite."""
_MOST_CELLS = 24
"""A heat map of more columns prints no figures: they would not fit."""


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    series: Series,
    *,
    x_range: Range | None = None,
    y_range: Range | None = None,
    marks: Mapping[str, tuple[float, float]] | None = None,
    guides: Series | None = None,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    dots: bool = False,
) -> str:
    """Lines, one for each series. `marks` are named points, `guides` dashed lines to compare with.

    `bands` are the low and high ends of an interval around the series of that name.
    """
    known, dashed = _points(series), _points(guides or {})
    edges = _points(
        {
            f"{name} {end}": (series[name][0], ends[end])
            for name, ends in (bands or {}).items()
            for end in (0, 1)
        }
    )
    frame = frame_of({**known, **dashed, **edges}, x_range, y_range)
    body = [*frame.axes(x_label, y_label)]
    body += [svg.path(frame.place(*points), None) for points in dashed.values()]
    for place, (name, points) in enumerate(known.items()):
        at = frame.place(*points)
        if f"{name} 0" in edges:
            low, high = (frame.place(*edges[f"{name} {end}"]) for end in (0, 1))
            body.append(svg.band(low, high, place))
        body.append(svg.path(at, place))
        if dots:
            body += [svg.circle(x, y, place) for x, y in at if math.isfinite(x) and math.isfinite(y)]
    body += frame.marked(marks or {})
    said = _told("Line chart", x_label, y_label, known, frame)
    return _document(title, said, body, [*known], [*dashed], frame)


def histogram(
    title: str,
    x_label: str,
    y_label: str,
    edges: ArrayLike,
    heights: Mapping[str, ArrayLike],
    *,
    guides: Mapping[str, float] | None = None,
) -> str:
    """Heights over the bins between `edges`, laid over each other; `guides` are named upright lines."""
    steps = np.asarray(edges, dtype=np.float64)
    known = {
        name: (np.repeat(steps, 2)[1:-1], np.repeat(np.asarray(values, dtype=np.float64), 2))
        for name, values in heights.items()
    }
    top = max((float(np.nanmax(y)) for _, y in known.values() if len(y)), default=1.0)
    frame = frame_of(known, (float(steps[0]), float(steps[-1])), (0.0, (top or 1.0) * 1.05))
    body = [*frame.axes(x_label, y_label)]
    for place, points in enumerate(known.values()):
        body.append(svg.path(frame.place(*points), place, filled=frame.foot))
    ends = np.array(frame.y)
    body += [svg.path(frame.place(np.array([x, x]), ends), None) for x in (guides or {}).values()]
    said = _told("Histogram", x_label, y_label, known, frame)
    return _document(title, said, body, [*known], [*(guides or {})], frame)


def bars(title: str, x_label: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """A lying bar under the name of each row, made of the named parts; the same part has the same colour in each row."""
    drawn = {name: {p: min(v, _FAR) for p, v in row.items() if v > 0} for name, row in rows.items()}
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    end = max((sum(row.values()) for row in drawn.values()), default=0.0)
    high = _BAR * max(1, len(rows))
    frame = Frame(SIDE, 42.0, WIDTH - 2 * SIDE, high, (0.0, end or 1.0), (0.0, 1.0))
    body = [*frame.upright(x_label)]
    for place, (name, row) in enumerate(drawn.items()):
        top, start = frame.top + _BAR * place + 22, 0.0
        body.append(svg.text(frame.left, top - 6, svg.shorten(name, frame.width), halo=True))
        for part, value in row.items():
            x, until = frame.px(start), frame.px(start + value)
            says = f"{name}: {part} {svg.number(value)}"
            body.append(svg.rect(x, top, until - x, 16, series=parts.index(part), says=says))
            start += value
    said = f"Bar chart of {x_label} by {', '.join(parts)} for {', '.join(rows)}."
    return _document(title, said, body, parts if len(parts) > 1 else [], [], frame)


def heat_map(title: str, names: Sequence[str], values: ArrayLike) -> str:
    """A square of values from -1 to 1 as colours: blue below zero, red above, grey where there is none."""
    table = np.asarray(values, dtype=np.float64)
    if table.shape != (len(names), len(names)):
        raise ValueError(f"{table.shape} values for {len(names)} rows and {len(names)} columns")
    wide = [svg.text_width(name) for name in names]
    left = min(230.0, max([40.0, *wide]) + 28)
    foot = min(140.0, max([20.0, *wide]) * 0.66 + 26)
    side = min(46.0, max(14.0, (WIDTH + 160 - left) / max(1, len(names))))
    body: list[str] = []
    for row, name in enumerate(names):
        y = 46.0 + side * row
        body.append(svg.text(left - 8, y + side / 2 + 4, svg.shorten(name, left - 24), anchor="end"))
        for column, other in enumerate(names):
            body += _cell(left + side * column, y, side, table[row, column], f"{name}, {other}", len(names))
    bottom = 46.0 + side * len(names)
    for column, name in enumerate(names):
        x, shown = left + side * (column + 0.6), svg.shorten(name, 190)
        body.append(svg.text(x, bottom + 16, shown, anchor="end", turned=True))
    said = f"Heat map of {', '.join(names)}; values from -1 (blue) to 1 (red)."
    return svg.document(title, said, max(360.0, left + side * len(names) + 24), bottom + foot, body)


def _cell(x: float, y: float, side: float, value: float, says: str, columns: int) -> Iterator[str]:
    if not math.isfinite(value):
        yield svg.rect(x, y, side - 1, side - 1, colour="#8c959f", says=f"{says}: unknown")
        return
    strength = min(1.0, abs(value))
    full = (178, 43, 30) if value > 0 else (16, 92, 160)
    red, green, blue = (round(245 + (part - 245) * strength) for part in full)
    yield svg.rect(
        x, y, side - 1, side - 1, colour=f"#{red:02x}{green:02x}{blue:02x}", says=f"{says}: {value:+.2f}"
    )
    if columns <= _MOST_CELLS and side >= 24:
        ink = "#ffffff" if strength > 0.75 else "#1b1f24"
        shown = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")
        yield svg.text(
            x + side / 2, y + side / 2 + 3.5, shown, anchor="middle", size=min(11.0, side / 3.6), colour=ink
        )


def _points(series: Series) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    known = {
        name: tuple(np.clip(np.asarray(v, dtype=np.float64), -_FAR, _FAR) for v in pair)
        for name, pair in series.items()
    }
    for name, (x, y) in known.items():
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(f'series "{name}" has {x.shape} values of x and {y.shape} of y')
    return {name: (x, y) for name, (x, y) in known.items()}


def _told(kind: str, x_label: str, y_label: str, series: Points, frame: Frame) -> str:
    """What a screen reader says of it."""
    low, high = (svg.number(value) for value in frame.x)
    bottom, top = (svg.number(value) for value in frame.y)
    return f"{kind} of {y_label} ({bottom} to {top}) over {x_label} ({low} to {high})" + (
        f" for {', '.join(series)}." if series else ", without data."
    )


def _document(
    title: str, said: str, body: Sequence[str], series: Sequence[str], guides: Sequence[str], frame: Frame
) -> str:
    """The picture with its legend below."""
    names, height = legend(series, guides, frame.foot)
    return svg.document(title, said, WIDTH, height, [*body, *names])
