"""The command lines of a script as a shell would see them: joined, without comments, simple variables expanded."""

import re
from functools import lru_cache

__all__ = ["LONGEST", "Line", "changed_lines", "command_lines"]

Line = tuple[int, str]
"""A line's number, from 1 on, and its text."""

LONGEST = 16 * 1024
"""Characters of a command; of a longer one, only both ends are read, since matching time grows with the line."""
_MOST_JOINED = 100
_MOST_VARIABLES = 5000
_LONGEST_VALUE = 4096
_MOST_FILLED = 256 * 1024
"""Characters that all variables together may add to a script: repeated A=$A$A is a bomb."""

_ASSIGNED = re.compile(
    r"\s*(?:(?:export|local|readonly|declare(?: -\w+)?|set|env)[ \t]+)?([A-Za-z_]\w{0,63})(\+?)="
    r"((?>(?:\"[^\"]{0,4096}\"|'[^']{0,4096}'|[^\s;&|<>()`\"'#]{1,4096}+(?![(`]))+))"
)
_NOT_PLAIN = ("$(", "`", "$'")
_QUOTED = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w{0,63})(?::?([-=])([^{}$\n]{0,256}))?\}|([A-Za-z_]\w{0,63}))")


def command_lines(text: str) -> tuple[Line, ...]:
    """Each command with the number of its first line; what is unknown here stays as written."""
    return _read(text)[0]


def changed_lines(text: str) -> tuple[Line, ...]:
    """The command lines that differ from lines of the text: joined, or with variables expanded."""
    return _read(text)[1]


@lru_cache(maxsize=2)  # a script is analysed several times in a row
def _read(text: str) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    variables: dict[str, str] = {}
    lines: list[Line] = []
    changed: list[Line] = []
    room = _MOST_FILLED
    for number, written, line in _joined(text):
        if "$" in line and room > 0 and (variables or "${" in line):
            filled = _filled(line, variables, room)
            room -= max(0, len(filled) - len(line))
            line = filled
        if "=" in line and len(variables) < _MOST_VARIABLES:
            for part in line.split(";", _MOST_JOINED) if ";" in line else (line,):
                if found := _ASSIGNED.match(part):
                    value = found[3]
                    if '"' in value or "'" in value:
                        value = _QUOTED.sub(r"\1\2", value)
                    if found[2]:  # A+=more
                        value = variables.get(found[1], "") + value
                    if not any(mark in found[3] for mark in _NOT_PLAIN) and len(value) <= _LONGEST_VALUE:
                        variables[found[1]] = value
        if (
            len(line) > LONGEST
        ):  # the blank between the ends makes it longer than LONGEST, which shows that it was cut
            line = f"{line[: LONGEST // 2]} {line[-LONGEST // 2 :]}"
        lines.append((number, line))
        if line is not written and line != written:
            changed.append((number, line))
    return tuple(lines), tuple(changed)


def _joined(text: str) -> list[tuple[int, str, str]]:
    """Lines that end in a backslash joined with those that follow, each with its number and its first line as written.

    Comments and empty lines are left out.
    """
    found: list[tuple[int, str, str]] = []
    begun = written = ""
    first = joined = 0
    for number, raw in enumerate(text.replace("\t", " ").split("\n"), 1):
        line = raw.strip()
        if not joined:
            if not line or line[0] == "#":
                continue
            if line[-1] != "\\":  # most lines
                found.append((number, line, line))
                continue
            first, written = number, line
        elif raw[:1].isspace() or begun[-1:].isspace():  # otherwise it continues in the middle of a word
            line = f"{begun.rstrip()} {line}"
        else:
            line = begun + line
        if line.endswith("\\") and joined < _MOST_JOINED:
            begun, joined = line[:-1], joined + 1
            continue
        found.append((first, written, line))
        joined = 0
    if joined:
        found.append((first, written, begun))
    return found


def _filled(line: str, variables: dict[str, str], room: int) -> str:
    def value(found: re.Match[str]) -> str:
        nonlocal room
        name, sets, default, bare = found.groups()
        known = variables.get(name or bare)
        if not known and default:
            known = default
            if sets == "=" and len(variables) < _MOST_VARIABLES:
                variables[name] = known.strip("\"'")
            if known[0] in "\"'" and line.count('"', 0, found.start()) % 2:
                known = known.strip("\"'")  # quotes inside of quotes, which end nothing
        if known is None or room < len(known):
            return found[0]
        room -= len(known)
        return known

    return _VARIABLE.sub(value, line)
