"""The text of an output with its lines, and where pieces of text are in it."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from tocsin.causes.lines import COLOUR, FRAME, is_option
from tocsin.causes.patterns import Pattern

__all__ = ["LONGEST_LINE", "Text", "explains_option", "parse_text"]

LONGEST_LINE = 2000
"""Characters of a line that are examined."""
_MOST_OCCURRENCES = 50
_LONGEST_EVIDENCE = 300
_INDENTED = 8
"""Blanks before a line that may explain the option above it."""
_LONGEST_EXPLANATION = 12
"""Lines of it."""
_LINE_END = re.compile("\n")


@dataclass(frozen=True, slots=True)
class Text:
    """A text with its lines; a carriage return ends a line that is not counted."""

    lower: str
    original: str
    ends: list[int]
    excuses: dict[str, list[Pattern]] = field(default_factory=dict)
    """For each line examined, the patterns by which all kinds ignore it."""
    excepted: dict[tuple[str, str], bool] = field(default_factory=dict)
    """For each kind and line examined, whether the kind ignores it."""

    def line_of(self, at: int) -> int:
        return bisect_right(self.ends, at - 1) if at else 0

    def start_of(self, line: int) -> int:
        """The start of a line; for the line after the last one, the end of the text."""
        if line > len(self.ends):
            return len(self.lower)
        return self.ends[line - 1] + 1 if line else 0

    def line(self, number: int) -> str:
        """The beginning of a line, in lower case."""
        return self.examined(*self.part(self.start_of(number)))

    def part(self, at: int) -> tuple[int, int]:
        """The start and end of the line, or of its part between carriage returns."""
        first = max(self.lower.rfind("\n", 0, at), self.lower.rfind("\r", 0, at)) + 1
        ends = [end for end in (self.lower.find("\n", at), self.lower.find("\r", at)) if end >= 0]
        return first, min(ends, default=len(self.lower))

    def examined(self, first: int, end: int) -> str:
        return self.lower[first : min(end, first + LONGEST_LINE)]

    def evidence(self, first: int, end: int) -> str:
        return " ".join(self.original[first:end].split("\n")).strip()[:_LONGEST_EVIDENCE]

    def occurrences(self, key: str, start: int = 0) -> Iterator[int]:
        """The last positions of a piece of text from this position on, the last first."""
        at = len(self.lower)
        for _ in range(_MOST_OCCURRENCES):
            at = self.lower.rfind(key, start, at)
            if at < 0:
                return
            yield at

    def last_lines(self, most: int) -> list[int]:
        """The numbers of the last lines that are neither empty nor part of a stack or a banner."""
        found: list[int] = []
        end = len(self.lower)
        for number in range(len(self.ends), -1, -1):
            start = self.start_of(number)
            line = self.examined(start, end)
            if line.strip() and not FRAME.match(line):
                found.append(number)
                if len(found) == most:
                    break
            end = start - 1
        return found[::-1]


def parse_text(text: str) -> Text:
    plain = COLOUR.sub("", text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few letters become two, but positions must agree
        plain = lower
    return Text(lower, plain, [end.start() for end in _LINE_END.finditer(lower)])


def explains_option(text: Text, first: int) -> bool:
    """Whether the line that starts here is indented further than an option above it, which a help page describes."""
    if not text.lower[first : first + _INDENTED].isspace():
        return False
    number = text.line_of(first)
    indent = _indent(text.line(number))
    for above in range(number - 1, max(number - _LONGEST_EXPLANATION, -1), -1):
        line = text.line(above)
        if _indent(line) < indent:
            return is_option(line)
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
