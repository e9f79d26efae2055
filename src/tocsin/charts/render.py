"""Renders specifications as SVG files with vl-convert, without a browser or the network."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from tocsin.charts.spec import Spec
from tocsin.core.errors import TocsinError

__all__ = ["require_renderer", "to_svg", "write_charts"]

_VERSION = "5.21"
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def require_renderer() -> Any:
    """vl-convert, or an error that says how to install it."""
    try:
        import vl_convert
    except ImportError:
        raise TocsinError(
            "charts need the package vl-convert-python; install it with: pip install 'tocsin[charts]'"
        ) from None
    return vl_convert


def to_svg(spec: Spec) -> str:
    """The drawing, with the chart's description for screen readers."""
    # vl-convert ends the whole process if text holds a character that XML forbids.
    clean = _clean(spec)
    svg: str = require_renderer().vegalite_to_svg(clean, vl_version=_VERSION, allowed_base_urls=[])
    label = quoteattr(clean.get("description", ""))
    return svg.replace("<svg ", f'<svg role="graphics-document" aria-label={label} ', 1) + "\n"


def write_charts(folder: Path, charts: Mapping[str, Spec]) -> list[Path]:
    """Write each chart as NAME.svg; nothing is written unless all can be drawn."""
    drawn = {folder / f"{name}.svg": to_svg(spec) for name, spec in charts.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for path, svg in drawn.items():
        path.write_text(svg, "utf-8")
    return list(drawn)


def _clean(part: Any) -> Any:
    """The same without characters that XML forbids and without non-finite numbers."""
    if isinstance(part, dict):
        return {key: _clean(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_clean(value) for value in part]
    if isinstance(part, str):
        return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", part)
    if isinstance(part, float) and not abs(part) < float("inf"):
        return None
    return part
