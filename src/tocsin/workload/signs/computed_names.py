"""Program names that a script computes: from letters, pieces or what a command prints, other than the place of a program."""

import re
from collections.abc import Iterator, Sequence

from tocsin.workload.commands import Line

__all__ = ["computed_names"]

_BEFORE = re.compile(
    r"(?:^|(?:;|&&|\|\|?|(?<!>)&|\b(?:do|then|else|exec|eval|command|sh\s-\w{0,3}c))\s"
    r"|(?:^|[\s;|&])(?:nohup|srun|sudo|setsid|nice|ionice|timeout|taskset|time|stdbuf|numactl)\s(?:(?:-{1,2}[\w-]{1,20}(?:=\S{1,20}\s+|\s?\d[\d,.:-]{0,9}[smhd]?\s+))|\d[\d,.:-]{0,9}[smhd]?\s+){0,3})[\"']?$"
)
"""What stands before a command in its line."""
_NEAR = 48  # characters before a command that are looked at
_TESTS = (("[[", "]]"), ("((", "))"))
_PIECE = r"(?:\{\w{1,40}(?:\[[^\]]{1,20}\]|:[^}]{1,20})?\}|\w{1,40}|\([^()\n]{1,100}\))"
_PIECES = re.compile(rf"\${_PIECE}(?:\${_PIECE}){{1,20}}[\"']?(?=\s|$|;)", re.MULTILINE)
"""Several expansions with nothing between them."""
_VALUE = re.compile(
    r"=(?<=\w=)[\"']?(?:"
    r"(?:\$\(|`)\s{0,9}(?!(?:which|command|type|readlink|realpath|dirname|find|ls|pwd|mktemp|spack|conda|brew|whereis)\b)\w"
    r"|(?:\w{0,20}\$(?:\{\w{1,40}(?:\[[^\]]{1,20}\])?\}|\w{1,40})){2,9}[\"']?(?=\s|$|;)"
    r"|\$\{?\w{1,40}\}?\$(?:\{|\())"
    r"|\+=(?<=\w\+=)[\"']?\$(?:[{(]|\w{1,40}[\"']?\s{0,3};?\s{0,3}done)"
)
"""A value that a command prints, that several variables make, or that a loop makes longer piece by piece."""
_READ = re.compile(r"(?<!while )(?<!IFS= )\bread\s+(?:-\w{1,3}\s+){0,2}(\w{1,40})\s{0,3}<(?!<)")
"""A value that is a line of a file."""
_SET = re.compile(r"\w{1,40}$")
_USED = re.compile(r"\$\{?(\w{1,40})\}?[\"']?(?=\s|$|;)", re.MULTILINE)


def computed_names(lines: Sequence[Line], text: str) -> Iterator[int]:
    """The lines that run a program whose name is computed; `text` is the lines joined."""
    if "$" not in text:
        return
    computed = {
        name
        for found in _VALUE.finditer(text)
        for name in _SET.findall(text[max(found.start() - 40, 0) : found.start()])
    }
    computed.update(_READ.findall(text) if "read " in text else ())
    places = [found.start() for found in _PIECES.finditer(text)]
    if computed:
        places += [found.start() for found in _USED.finditer(text) if found[1] in computed]
    for place in sorted(places):
        if _begins_command(text, place):
            yield lines[text.count("\n", 0, place)][0]


def _begins_command(text: str, place: int) -> bool:
    begin = text.rfind("\n", 0, place) + 1
    before = text[begin:place]
    # A cut must not look like the beginning of a line.
    if not _BEFORE.search(before if len(before) <= _NEAR else "…" + before[-_NEAR:]):
        return False
    in_test = any(before.count(begins) > before.count(ends) for begins, ends in _TESTS)
    return not in_test or before.rstrip("\"' ").endswith((";", "do", "then"))
