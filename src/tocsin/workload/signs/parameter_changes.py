"""Parameter expansion: what `${x:-y}`, `${x/a/b}`, `${x:2:3}` and `${x,,}` make of a variable's value."""

import re
from collections.abc import Callable

__all__ = ["changed", "unescaped"]

_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|0?[0-7]{1,3}|.)", re.DOTALL)


def changed(value: str, rest: str, expand: Callable[[str], str]) -> str:
    """A value after the expansion that follows its name in braces."""
    if rest[:2] in (":-", ":=") or rest[:1] in "-=":
        return value or expand(rest.lstrip(":")[1:])
    if rest[:2] == ":+" or rest[:1] == "+":
        return expand(rest.lstrip(":")[1:]) if value else ""
    if piece := re.fullmatch(r":\s?(-?\d{1,4})(?::(\d{1,4}))?", rest):
        start = int(piece[1])
        return value[start : start + int(piece[2])] if piece[2] else value[start:]
    if rest[0] == "/":
        old, _, new = rest.lstrip("/").partition("/")
        old, new = expand(old), expand(new)
        return value.replace(old, new, -1 if rest[1:2] == "/" else 1) if old else value
    if rest[0] == "#":
        return value.removeprefix(expand(rest.lstrip("#")))
    if rest[0] == "%":
        return value.removesuffix(expand(rest.lstrip("%")))
    changes = {",": str.lower, "^": str.upper, "~": str.swapcase}
    if rest[0] in changes:
        return changes[rest[0]](value)
    return unescaped(value) if rest == "@E" else value


def unescaped(text: str) -> str:
    """Text with its escapes replaced."""
    return _ANSI.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xu" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8) & 255)
    return {"n": "\n", "t": "\t"}.get(code, code)
