"""Programs of sed: whether one runs a command."""

import re

__all__ = ["sed_runs"]

_ADDRESS = re.compile(
    r"(?>(?:[\s;{},!+~$\d]++|/(?:[^/\\\n]|\\.)*+/[IM]*|\\([^\w\s])(?:\\.|(?!\1)[^\n])*\1[IM]*)+)"
)
"""What precedes a command: line numbers, patterns and brackets."""
_REPLACES = re.compile(r"[sy]([^\w\s\\])(?:\\.|(?!\1).)*?\1(?:\\.|(?!\1).)*?\1(\w*)", re.DOTALL)
_TEXT = re.compile(r"[^\n]*")
_LABEL = re.compile(r"[^\n;}]*")
_MOST_COMMANDS = 1000


def sed_runs(program: str) -> bool:
    """Whether a sed program has the command `e`, or `s` with that flag."""
    if "e" not in program:
        return False
    place = 0
    for _ in range(_MOST_COMMANDS):
        if found := _ADDRESS.match(program, place):
            place = found.end()
        letter = program[place : place + 1]
        if not letter:
            return False
        if letter == "e":
            return True
        if letter in "sy":
            found = _REPLACES.match(program, place)
            if found is None:
                return False
            flags, writes, _ = found[2].partition("w")
            if letter == "s" and "e" in flags:
                return True
            place = program.find("\n", found.end()) if writes else found.end()
            if place < 0:
                return False
        elif letter in "aicrwRW#:btT" and (
            found := (_LABEL if letter in ":btT" else _TEXT).match(program, place)
        ):
            place = found.end()
        else:
            place += 1
    return True
