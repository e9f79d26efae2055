"""Values of a shell's words: text with marks for its unknown parts, and the worst origin of its parts."""

import re
from typing import NamedTuple

__all__ = [
    "A_NUMBER",
    "CHANGED",
    "COMPUTED",
    "FETCHED",
    "FROM_OUTSIDE",
    "FROM_SERVER",
    "ITSELF",
    "ITSELF_MARKS",
    "NOTHING",
    "NUMBER",
    "OUTSIDE",
    "OWN",
    "OWN_PIECE",
    "PERHAPS",
    "PIECE",
    "UNKNOWN",
    "WRITTEN",
    "Value",
    "base",
    "is_exact",
    "is_itself",
]

WRITTEN, OUTSIDE, OWN, COMPUTED = range(4)
"""Written out here; from the environment, a file or a tool; a piece of the script's text; such text changed."""
UNKNOWN, PIECE, NUMBER, ITSELF, FETCHED = "\0", "\1", "\2", "\5", "\6"
"""Marks in a value's text: something from outside, a piece of the script's text, a number computed from it, its file, and a
server's response."""


_MARK = re.compile(f"[{UNKNOWN}{PIECE}{NUMBER}{ITSELF}{FETCHED}]")
_OWN_FILES = ("BASH_SOURCE", "slurm_script", "JOB_SCRIPT", "/proc/", "/dev/fd/")
ITSELF_MARKS = ("$0", "${0", *_OWN_FILES)
"""A script without any of these does not name itself."""


class Value(NamedTuple):
    text: str
    origin: int


NOTHING = Value("", WRITTEN)
FROM_OUTSIDE = Value(UNKNOWN, OUTSIDE)
OWN_PIECE = Value(PIECE, OWN)
CHANGED = Value(PIECE, COMPUTED)
FROM_SERVER = Value(FETCHED, OUTSIDE)
A_NUMBER = Value(NUMBER, OUTSIDE)
PERHAPS = Value(PIECE, OUTSIDE)
"""Most likely from outside, but the script may have put it there."""


def is_exact(value: Value) -> bool:
    """Whether all of a value's text is known."""
    return _MARK.search(value.text) is None


def base(path: str) -> str:
    """The name of a file without its folder."""
    at = path.rfind("/") + 1  # words may be long
    return path[at:].rstrip("\"'") if at else path.strip("\"'")


def is_itself(word: str) -> bool:
    """Whether a word names the script itself, or what the system stores of it."""
    return word.strip('"{}') in ("$0", "${0") or any(mark in word for mark in _OWN_FILES)
