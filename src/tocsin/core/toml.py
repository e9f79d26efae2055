"""TOML of bounded size and depth: the cost of tomllib grows with the square of the parts of a dotted key."""

import re
import tomllib
from typing import Any

__all__ = ["parse_toml"]

_MOST = 1 << 20
_LONG_KEY = re.compile(
    r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[\ \t]*+\.[\ \t]*+){16}""", re.VERBOSE | re.ASCII
)


def parse_toml(text: str) -> dict[str, Any]:
    """The document; any error is a ValueError."""
    if len(text) > _MOST:
        raise ValueError(f"it has {len(text):,} characters, more than {_MOST:,}")
    if found := _LONG_KEY.search(text):
        raise ValueError(f"line {text.count(chr(10), 0, found.start()) + 1} has a key of too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
