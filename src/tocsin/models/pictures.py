"""Small charts as SVG text: lines, points, histograms, bars, heat maps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tocsin.models import svg

__all__ = ["Range", "Series", "bars", "heat_map", "histogram", "line_chart", "scatter"]

Series = Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Named series, each x and y."""
Range = tuple[float, float]

_WIDTH, _LEFT, _RIGHT, _TOP, _PLOT = 640.0, 64.0, 24.0, 68.0, 290.0
_ROW, _BAR = 20.0, 46.0
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
    description: str = "",
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
    frame = _frame({**known, **dashed, **edges}, x_range, y_range)
    body = [*frame.axes(x_label, y_label)]
    body += [svg.path(frame.place(*points), None) for points in dashed.values()]
    for place, (name, points) in enumerate(known.items()):
        at = frame.place(*points)
        if f"{name} 0" in edges:
            low, high = (frame.place(*edges[f"{name} {end}"]) for end in (0, 1))
            body.append(svg.band(low, high, place))
        body.append(svg.path(at, place))
        body += _dots(at, place, 3) if dots else []
    body += frame.marked(marks or {})
    legend, height = _legend([*known], [*dashed], frame.foot)
    said = description or _told("Line chart", x_label, y_label, known, frame)
    return svg.document(title, said, _WIDTH, height, [*body, *legend])


def scatter(
    title: str,
    x_label: str,
    y_label: str,
    series: Series,
    *,
    x_range: Range | None = None,
    y_range: Range | None = None,
    description: str = "",
) -> str:
    """Points, one colour for each series."""
    known = _points(series)
    frame = _frame(known, x_range, y_range)
    body = [*frame.axes(x_label, y_label)]
    for place, points in enumerate(known.values()):
        body += _dots(frame.place(*points), place, 2.2)
    legend, height = _legend([*known], [], frame.foot)
    said = description or _told("Scatter chart", x_label, y_label, known, frame)
    return svg.document(title, said, _WIDTH, height, [*body, *legend])


def histogram(
    title: str,
    x_label: str,
    y_label: str,
    edges: ArrayLike,
    heights: Mapping[str, ArrayLike],
    *,
    guides: Mapping[str, float] | None = None,
    description: str = "",
) -> str:
    """Heights over the bins between `edges`, laid over each other; `guides` are named upright lines."""
    steps = np.asarray(edges, dtype=np.float64)
    known = {
        name: (np.repeat(steps, 2)[1:-1], np.repeat(np.asarray(values, dtype=np.float64), 2))
        for name, values in heights.items()
    }
    top = max((float(np.nanmax(y)) for _, y in known.values() if len(y)), default=1.0)
    frame = _frame(known, (float(steps[0]), float(steps[-1])), (0.0, (top or 1.0) * 1.05))
    body = [*frame.axes(x_label, y_label)]
    for place, points in enumerate(known.values()):
        body.append(svg.path(frame.place(*points), place, filled=frame.foot))
    ends = np.array(frame.y)
    body += [svg.path(frame.place(np.array([x, x]), ends), None) for x in (guides or {}).values()]
    legend, height = _legend([*known], [*(guides or {})], frame.foot)
    said = description or _told("Histogram", x_label, y_label, known, frame)
    return svg.document(title, said, _WIDTH, height, [*body, *legend])


def bars(title: str, x_label: str, rows: Mapping[str, Mapping[str, float]], *, description: str = "") -> str:
    """A lying bar under the name of each row, made of the named parts; the same part has the same colour in each row."""
    drawn = {name: {p: min(v, _FAR) for p, v in row.items() if v > 0} for name, row in rows.items()}
    parts = list(dict.fromkeys(part for row in rows.values() for part in row))
    end = max((sum(row.values()) for row in drawn.values()), default=0.0)
    high = _BAR * max(1, len(rows))
    frame = _Frame(_RIGHT, 42.0, _WIDTH - 2 * _RIGHT, high, (0.0, end or 1.0), (0.0, 1.0))
    body = [*frame.upright(x_label)]
    for place, (name, row) in enumerate(drawn.items()):
        top, start = frame.top + _BAR * place + 22, 0.0
        body.append(svg.text(frame.left, top - 6, svg.shorten(name, frame.width), halo=True))
        for part, value in row.items():
            x, until = frame.px(start), frame.px(start + value)
            says = f"{name}: {part} {svg.number(value)}"
            body.append(svg.rect(x, top, until - x, 16, series=parts.index(part), says=says))
            start += value
    legend, height = _legend(parts if len(parts) > 1 else [], [], frame.foot)
    said = description or f"Bar chart of {x_label} by {', '.join(parts)} for {', '.join(rows)}."
    return svg.document(title, said, _WIDTH, height, [*body, *legend])


def heat_map(
    title: str,
    names: Sequence[str],
    values: ArrayLike,
    *,
    columns: Sequence[str] | None = None,
    description: str = "",
) -> str:
    """A table of values from -1 to 1 as colours: blue below zero, red above, grey where there is none."""
    table = np.asarray(values, dtype=np.float64)
    across = list(names if columns is None else columns)
    if table.shape != (len(names), len(across)):
        raise ValueError(f"{table.shape} values for {len(names)} rows and {len(across)} columns")
    left = min(230.0, max([40.0, *(svg.text_width(name) for name in names)]) + 28)
    foot = min(140.0, max([20.0, *(svg.text_width(name) for name in across)]) * 0.66 + 26)
    side = min(46.0, max(14.0, (_WIDTH + 160 - left) / max(1, len(across))))
    body: list[str] = []
    for row, name in enumerate(names):
        y = 46.0 + side * row
        body.append(svg.text(left - 8, y + side / 2 + 4, svg.shorten(name, left - 24), anchor="end"))
        for column, other in enumerate(across):
            body += _cell(left + side * column, y, side, table[row, column], f"{name}, {other}", len(across))
    bottom = 46.0 + side * len(names)
    for column, other in enumerate(across):
        body.append(
            svg.text(
                left + side * (column + 0.6), bottom + 16, svg.shorten(other, 190), anchor="end", turned=True
            )
        )
    said = description or f"Heat map of {', '.join(names)}; values from -1 (blue) to 1 (red)."
    return svg.document(title, said, max(360.0, left + side * len(across) + 24), bottom + foot, body)


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


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the plot lies on the paper, with the range of both axes."""

    left: float
    top: float
    width: float
    height: float
    x: Range
    y: Range

    @property
    def foot(self) -> float:
        return self.top + self.height

    def px(self, x: float) -> float:
        return self.left + (x - self.x[0]) / (self.x[1] - self.x[0]) * self.width

    def py(self, y: float) -> float:
        return self.foot - (y - self.y[0]) / (self.y[1] - self.y[0]) * self.height

    def place(self, xs: NDArray[Any], ys: NDArray[Any]) -> list[tuple[float, float]]:
        """On the paper; what lies beside the range of x is not finite, what lies above or below is on the edge."""
        inside = (xs >= self.x[0]) & (xs <= self.x[1])
        across = np.where(inside, xs, np.nan)
        return [
            (self.px(x), self.py(y))
            for x, y in zip(across.tolist(), np.clip(ys, *self.y).tolist(), strict=True)
        ]

    def upright(self, x_label: str) -> Iterator[str]:
        """The axis below, its lines and labels."""
        values = svg.ticks(*self.x, most=7)
        for value, label in zip(values, svg.labels(values), strict=True):
            yield svg.line(self.px(value), self.top, self.px(value), self.foot)
            yield svg.text(self.px(value), self.foot + 17, label, anchor="middle", soft=True)
        yield svg.line(self.left, self.foot, self.left + self.width, self.foot, axis=True)
        yield svg.text(self.left + self.width / 2, self.foot + 36, x_label, anchor="middle", soft=True)

    def axes(self, x_label: str, y_label: str) -> Iterator[str]:
        values = svg.ticks(*self.y)
        for value, label in zip(values, svg.labels(values), strict=True):
            yield svg.line(self.left, self.py(value), self.left + self.width, self.py(value))
            yield svg.text(self.left - 8, self.py(value) + 4, label, anchor="end", soft=True)
        yield svg.text(16, self.top - 18, svg.shorten(y_label, self.width), soft=True)
        yield from self.upright(x_label)

    def marked(self, marks: Mapping[str, tuple[float, float]]) -> Iterator[str]:
        """Named points; the name stands where there is room for it."""
        for name, (x, y) in marks.items():
            if not (math.isfinite(x) and math.isfinite(y)):
                continue
            [(across, down)] = self.place(np.array([x]), np.array([y]))
            if not math.isfinite(across):
                continue
            fits = across + 12 + svg.text_width(name) < self.left + self.width
            yield svg.circle(across, down, None, radius=5)
            height = down - 8 if down - 22 > self.top else down + 20
            if fits:
                yield svg.text(across + 9, height, name, halo=True)
            else:
                yield svg.text(across - 9, height, name, anchor="end", halo=True)


def _frame(
    series: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], x: Range | None, y: Range | None
) -> _Frame:
    xs, ys = (np.concatenate([pair[axis] for pair in series.values()] or [np.empty(0)]) for axis in (0, 1))
    return _Frame(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, _PLOT, x or _range(xs), y or _range(ys, base=True))


def _range(values: NDArray[Any], *, base: bool = False) -> Range:
    """That of the data, never empty; with `base`, from zero where the data are not far above it."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if base:
        low, high = (0.0 if 0 <= low <= high / 2 else low - (high - low) * 0.05), high + (high - low) * 0.05
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-12):
        pad = abs(high) / 10 or 0.5
        return low - pad, high + pad
    return low, high


def _dots(points: Sequence[tuple[float, float]], series: int, radius: float) -> list[str]:
    return [
        svg.circle(x, y, series, radius=radius) for x, y in points if math.isfinite(x) and math.isfinite(y)
    ]


def _points(series: Series) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    known = {
        name: tuple(np.clip(np.asarray(v, dtype=np.float64), -_FAR, _FAR) for v in pair)
        for name, pair in series.items()
    }
    for name, (x, y) in known.items():
        if x.shape != y.shape or x.ndim != 1:
            raise ValueError(f'series "{name}" has {x.shape} values of x and {y.shape} of y')
    return {name: (x, y) for name, (x, y) in known.items()}


def _legend(series: Sequence[str], guides: Sequence[str], foot: float) -> tuple[list[str], float]:
    """The names in rows under the plot, and how high the picture is with them."""
    body: list[str] = []
    x, y = 16.0, foot + 62
    names = [(name, place) for place, name in enumerate(series)] + [(name, None) for name in guides]
    if len(names) < 2 and not guides:
        return body, foot + 50
    for name, place in names:
        shown = svg.shorten(name, _WIDTH - 70)
        wide = svg.text_width(shown) + 46
        if x > 16 and x + wide > _WIDTH - 8:
            x, y = 16.0, y + _ROW
        body += [svg.path([(x, y - 4), (x + 20, y - 4)], place), svg.text(x + 27, y, shown)]
        x += wide
    return body, y + 16


def _told(
    kind: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, tuple[NDArray[Any], NDArray[Any]]],
    frame: _Frame,
) -> str:
    low, high = (svg.number(value) for value in frame.x)
    bottom, top = (svg.number(value) for value in frame.y)
    return f"{kind} of {y_label} ({bottom} to {top}) over {x_label} ({low} to {high})" + (
        f" for {', '.join(series)}." if series else ", without data."
    )
