"""Find the root cause in the text of one output file: certain lines first, others near its end only."""

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tocsin.causes.catalogue import Catalogue, Rule
from tocsin.causes.patterns import Pattern

__all__ = ["Match", "find_matches", "root_cause"]

NEAR_END = 30
"""Lines, from the end, among which a line that is not certain counts; those of a stack or a banner are left out."""
TOGETHER = 120
"""Lines: what lies further above the last match has another story."""
SECONDS = 1.0
_MOST_OCCURRENCES = 50
_LONGEST_LINE = 2000
_LONGEST_EVIDENCE = 300
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_FRAME = re.compile(r"\s|[-=]{3}|=  |at |frame #|#\d|\[\d+\]|\[\S{1,80}:\d{1,9}\] \[", re.ASCII)
"""How lines of stacks and banners begin."""
_PREFIX = re.compile(
    r"""(?:\s|\[?rank\s?\d{1,6}\]?:|\[?\d{1,6}\]?:\s|\[\d{1,6},\d{1,6}\]<\w{1,9}>:|\(\w{1,20}\ pid=\d{1,9}[^)]{0,60}\)|[│|]\s|>\s)*""",
    re.VERBOSE,
)
"""What launchers write before each line of a task."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that speaks for a kind."""

    rule: Rule
    line: int
    """Its number in the text, from 0 on."""
    text: str


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with its lines; a carriage return ends a line that is not counted."""

    lower: str
    original: str
    ends: list[int]

    def line_of(self, at: int) -> int:
        return bisect_right(self.ends, at - 1) if at else 0

    def part(self, at: int) -> tuple[int, int]:
        """Where the line, or its part between carriage returns, begins and ends."""
        first = max(self.lower.rfind("\n", 0, at), self.lower.rfind("\r", 0, at)) + 1
        ends = [end for end in (self.lower.find("\n", at), self.lower.find("\r", at)) if end >= 0]
        return first, min(ends, default=len(self.lower))


def find_matches(
    text: str, catalogue: Catalogue, *, clock: Callable[[], float] = time.monotonic
) -> list[Match]:
    """The lines that may name a cause; after SECONDS, those found until then."""
    until = clock() + SECONDS
    plain = _COLOUR.sub("", text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few letters become two: places must agree
        plain = lower
    body = _Text(lower, plain, [i for i, c in enumerate(lower) if c == "\n"])
    last = [
        number for number, line in enumerate(lower.split("\n")) if line.strip() and not _FRAME.match(line)
    ]
    near = last[-NEAR_END] if len(last) >= NEAR_END else 0
    over = max((_line(body, p) for p in catalogue.success), default=-1)
    keys: dict[str, list[Rule]] = {}
    for rule in catalogue.rules:
        keys.setdefault(rule.pattern.key, []).append(rule)
    found: dict[tuple[int, str], Match] = {}
    for key, rules in keys.items():
        if clock() > until:
            break
        for at in _occurrences(lower, key):
            first, end = body.part(at)
            if at - first > _LONGEST_LINE:
                continue
            number = body.line_of(at)
            line = _bare(lower[first : min(end, first + _LONGEST_LINE)])
            for rule in rules:
                if not rule.certain and (number < near or number <= over):
                    continue
                if not rule.pattern.matches(line) or _excused(line, rule, catalogue):
                    continue
                evidence = _COLOUR.sub("", body.original[first:end]).strip()[:_LONGEST_EVIDENCE]
                found.setdefault((number, rule.kind), Match(rule, number, evidence))
    return list(found.values())


def root_cause(matches: Sequence[Match]) -> Match | None:
    """Of those that belong together, the last line of the kind that is the root of the others."""
    if not matches:
        return None
    last = max(match.line for match in matches)
    together = [m for m in matches if m.line >= last - TOGETHER or m.rule.certain]
    return min(together, key=lambda m: (m.rule.rank, -m.line))


def _occurrences(text: str, key: str) -> Iterator[int]:
    """The last places of a piece of text, the last first."""
    at = len(text)
    for _ in range(_MOST_OCCURRENCES):
        at = text.rfind(key, 0, at)
        if at < 0:
            return
        yield at


def _line(body: _Text, pattern: Pattern) -> int:
    """The last line that matches; -1 if none does."""
    for at in _occurrences(body.lower, pattern.key):
        first, end = body.part(at)
        if pattern.matches(_bare(body.lower[first : min(end, first + _LONGEST_LINE)])):
            return body.line_of(at)
    return -1


def _bare(line: str) -> str:
    found = _PREFIX.match(line)
    return line[found.end() if found else 0 :].rstrip(" │|\t")


def _excused(line: str, rule: Rule, catalogue: Catalogue) -> bool:
    if any(pattern.matches(line) for pattern in rule.excepted):
        return True
    return any(pattern.matches(line) for pattern in catalogue.harmless)
