"""The frame of a chart: where its plot lies on the paper, between axes and above a legend."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.models import svg

__all__ = ["SIDE", "WIDTH", "Frame", "Points", "Range", "frame_of", "legend"]

Points = Mapping[str, tuple[NDArray[Any], NDArray[Any]]]
"""Named series, each x and y."""
Range = tuple[float, float]

WIDTH, SIDE = 640.0, 24.0
"""Of the paper, and of the margin beside a plot that needs no room for labels."""
_LEFT, _TOP, _PLOT, _ROW = 64.0, 68.0, 290.0, 20.0


@dataclass(frozen=True, slots=True)
class Frame:
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


def frame_of(series: Points, x: Range | None, y: Range | None) -> Frame:
    """The usual frame, with the ranges that are given or else those of the series."""
    xs, ys = (np.concatenate([pair[axis] for pair in series.values()] or [np.empty(0)]) for axis in (0, 1))
    return Frame(_LEFT, _TOP, WIDTH - _LEFT - SIDE, _PLOT, x or _range(xs), y or _range(ys, base=True))


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


def legend(series: Sequence[str], guides: Sequence[str], foot: float) -> tuple[list[str], float]:
    """The names in rows under the plot, and how high the picture is with them."""
    body: list[str] = []
    x, y = 16.0, foot + 62
    names = [(name, place) for place, name in enumerate(series)] + [(name, None) for name in guides]
    if len(names) < 2 and not guides:
        return body, foot + 50
    for name, place in names:
        shown = svg.shorten(name, WIDTH - 70)
        wide = svg.text_width(shown) + 46
        if x > 16 and x + wide > WIDTH - 8:
            x, y = 16.0, y + _ROW
        body += [svg.path([(x, y - 4), (x + 20, y - 4)], place), svg.text(x + 27, y, shown)]
        x += wide
    return body, y + 16
