"""Drawing in SVG by hand: escaped text, colours that read on light or dark paper, ticks at round numbers.

Colours are attributes, so that any viewer shows the light form; one style block turns them over where the reader
prefers dark. There is no script, no link and no font to fetch.
"""

import math
import re
import zlib
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

__all__ = [
    "COLOURS",
    "band",
    "circle",
    "document",
    "labels",
    "line",
    "number",
    "path",
    "rect",
    "shorten",
    "text",
    "text_width",
    "ticks",
]

_PAPER, _INK, _SOFT, _GRID = "#ffffff", "#1b1f24", "#57606a", "#d8dee4"
_DARK = {"paper": "#14181f", "ink": "#e6e9ee", "soft": "#9aa4b0", "grid": "#303842"}

# The colours of Okabe and Ito, which the colour-blind can tell apart; the yellow darkened so that it shows on white.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0518c", "#8a6d00", "#3a8fc4", "#6b4fbb", "#57606a")
_ON_DARK = ("#4fb0f0", "#ff8a3d", "#3dcb9e", "#e79ac6", "#e6c229", "#8fd0f7", "#b39df2", "#9aa4b0")

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _style() -> str:
    rules = [
        f".tc-paper{{fill:{_DARK['paper']}}}.tc-halo{{stroke:{_DARK['paper']}}}",
        f".tc-ink{{fill:{_DARK['ink']}}}.tc-soft{{fill:{_DARK['soft']}}}",
        f".tc-grid{{stroke:{_DARK['grid']}}}.tc-axis{{stroke:{_DARK['soft']}}}",
        *(f".tc-l{n}{{stroke:{colour}}}.tc-f{n}{{fill:{colour}}}" for n, colour in enumerate(_ON_DARK)),
    ]
    return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"


def document(title: str, description: str, width: float, height: float, body: Iterable[str]) -> str:
    """The whole picture on paper of its own; title and description are what a screen reader says."""
    name = (
        f"tc-{zlib.crc32(f'{title}{description}'.encode(errors='replace')):08x}"  # several may share a page
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" '
            f'height="{_n(height)}" role="img" aria-labelledby="{name}-t" aria-describedby="{name}-d" '
            'font-family="system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif" font-size="12">',
            f'<title id="{name}-t">{_safe(title)}</title>',
            f'<desc id="{name}-d">{_safe(description)}</desc>',
            _style(),
            f'<rect class="tc-paper" width="{_n(width)}" height="{_n(height)}" fill="{_PAPER}"/>',
            text(16, 26, shorten(title, width - 32, 15), size=15, bold=True),
            *body,
            "</svg>\n",
        ]
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    soft: bool = False,
    size: float = 12,
    bold: bool = False,
    halo: bool = False,
    colour: str | None = None,
    turned: bool = False,
) -> str:
    """Words at a point; with a halo they can be read on top of lines, turned they run upwards to the right."""
    kind, fill = ("soft", _SOFT) if soft else ("ink", _INK)
    said = f'<text x="{_n(x)}" y="{_n(y)}" fill="{colour or fill}"'
    said += "" if colour else f' class="tc-{kind}{" tc-halo" if halo else ""}"'
    said += f' text-anchor="{anchor}"' if anchor != "start" else ""
    said += f' font-size="{_n(size)}"' if size != 12 else ""
    said += ' font-weight="600"' if bold else ""
    said += (
        f' stroke="{_PAPER}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if halo else ""
    )
    said += f' transform="rotate(-40 {_n(x)} {_n(y)})"' if turned else ""
    return f"{said}>{_safe(words)}</text>"


def line(x1: float, y1: float, x2: float, y2: float, *, axis: bool = False) -> str:
    """A straight line of the frame: of the axis, or of the grid."""
    kind, colour = ("axis", _SOFT) if axis else ("grid", _GRID)
    return (
        f'<path class="tc-{kind}" d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" stroke="{colour}" fill="none" '
        f'stroke-width="1"/>'
    )


def path(points: Sequence[tuple[float, float]], series: int | None, *, filled: float | None = None) -> str:
    """A line through points, broken where one is not finite; without a series it is a dashed guide.

    `filled` closes it down to that height and shades what is under it.
    """
    pieces: list[str] = []
    pen = False
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            pieces.append(f"{'L' if pen else 'M'}{_n(x)} {_n(y)}")
            pen = True
        else:
            pen = False
    if not pieces:
        return ""
    way = "".join(pieces)
    if series is None:
        return (
            f'<path class="tc-axis" d="{way}" stroke="{_SOFT}" fill="none" stroke-width="1.2" '
            'stroke-dasharray="3 4"/>'
        )
    place = series % len(COLOURS)
    dash = "" if series < len(COLOURS) else ' stroke-dasharray="7 3"'
    drawn = (
        f'<path class="tc-l{place}" d="{way}" stroke="{COLOURS[place]}" fill="none" stroke-width="2" '
        f'stroke-linejoin="round" stroke-linecap="round"{dash}/>'
    )
    if filled is None:
        return drawn
    under = f"{way}L{_n(points[-1][0])} {_n(filled)}L{_n(points[0][0])} {_n(filled)}Z"
    return f'<path class="tc-f{place}" d="{under}" fill="{COLOURS[place]}" fill-opacity="0.18"/>{drawn}'


def band(low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]], series: int) -> str:
    """The surface between two lines, lightly shaded."""
    points = [(x, y) for x, y in [*low, *reversed(high)] if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return ""
    place = series % len(COLOURS)
    way = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return f'<path class="tc-f{place}" d="M{way}Z" fill="{COLOURS[place]}" fill-opacity="0.18"/>'


def circle(x: float, y: float, series: int | None, *, radius: float = 3) -> str:
    """A dot in the colour of a series; without one, a ring that marks a point."""
    if series is None:
        return (
            f'<circle class="tc-paper tc-axis" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{_PAPER}" '
            f'stroke="{_SOFT}" stroke-width="2"/>'
        )
    place = series % len(COLOURS)
    return f'<circle class="tc-f{place}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{COLOURS[place]}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    series: int | None = None,
    colour: str = "",
    says: str = "",
) -> str:
    """A box in the colour of a series, or in one of its own; `says` is shown when one points at it."""
    place = (series or 0) % len(COLOURS)
    own = f'class="tc-f{place}" fill="{COLOURS[place]}"' if series is not None else f'fill="{colour}"'
    box = f'<rect {own} x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
    return f"{box}><title>{_safe(says)}</title></rect>" if says else f"{box}/>"


def ticks(low: float, high: float, *, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0, 1), ticks(3, 47)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [10.0, 20.0, 30.0, 40.0])
    """
    if not (math.isfinite(low) and math.isfinite(high) and high - low > 1e-150):
        return []
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    # A tenth below will do: an axis that ends a little above 1 still has its ticks at every 0.2.
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.9)
    first, last = math.ceil(low / step - 0.01), math.floor(high / step + 0.01)
    decimals = 1 - math.floor(math.log10(step))
    return [round(n * step, decimals) for n in range(first, last + 1)]


def labels(values: Sequence[float]) -> list[str]:
    """Ticks as text, all with the same number of decimals.

    >>> labels([0, 0.5, 1]), labels([0, 5000, 10000]), labels([0, 2e6])
    (['0.0', '0.5', '1.0'], ['0', '5,000', '10,000'], ['0', '2M'])
    """
    if len(values) < 2:
        return [number(value) for value in values]
    step = values[1] - values[0]
    largest = max(abs(value) for value in values)
    if largest >= 1e15 or largest < 1e-6:
        return [f"{value:.3g}" for value in values]
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if largest >= size:
            return [f"{value / size:g}{unit}" if value else "0" for value in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value:,.{decimals}f}" for value in values]


def number(value: float) -> str:
    """A figure in a picture: three digits where it has a fraction.

    >>> number(0.12345), number(1234.0), number(20)
    ('0.123', '1,234', '20')
    """
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


def text_width(words: str, size: float = 12) -> float:
    """About how wide a viewer sets it; a little more than the usual fonts take."""
    return sum(1.0 if ord(letter) > 0x2E7F else 0.57 for letter in words) * size


def shorten(words: str, width: float, size: float = 12) -> str:
    """As much of it as fits, with an ellipsis for the rest."""
    if text_width(words, size) <= width:
        return words
    kept = words[: max(1, int(width / (0.57 * size)))]
    while kept and text_width(f"{kept}…", size) > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def _safe(words: str) -> str:
    """Text that XML may hold, whatever a job's name was made of."""
    return escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", words))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
