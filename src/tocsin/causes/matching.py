"""Finds the root cause in the text of one output file: certain lines first, others only near its end."""

import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tocsin.causes.catalogue import Catalogue, Rule
from tocsin.causes.numbers import find_numbers
from tocsin.causes.patterns import Pattern

__all__ = ["CONSEQUENCE", "Match", "find_matches", "root_cause"]

NEAR_END = 30
"""Number of last lines in which a line that is not certain counts; lines of a stack or a banner are skipped."""
VERY_END = 3
"""Number of last lines, counted likewise, that are a program's last words: there an unspecific "error" is the cause."""
TOGETHER = 120
"""Lines: matches further above the last one are unrelated."""
WENT_ON = 500
"""Lines: matches further above the end did not end the job, since it continued for long."""
EXHAUSTED = 20
"""Below this rank, something ran out or broke (memory, disk, time, a node); the end may come much later."""
CRASHED = 46
"""From this rank on, a kind says how the job ended; an exception raised before is the reason."""
ABORTED = 52
"""From this rank on, it says only that the job ended, not why: it may be above the reason."""
CONSEQUENCE = 1000
"""From this rank on, a line only reports that something failed, so the job's record takes precedence."""
SECONDS = 1.0
_MOST_OCCURRENCES = 50
_LONGEST_LINE = 2000
_LONGEST_EVIDENCE = 300
_LONGEST_STACK = 400
_MOST_TRACEBACKS = 10
_EXCEPTION = "python_exception"
_GENERAL = "program_error"
_TRACEBACK = "traceback (most recent call last)"
_LINE_END = re.compile("\n")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_FRAME = re.compile(r"\s|[-=]{3}|=  |at |frame #|#\d|\[\d+\]|\[\S{1,80}:\d{1,9}\] \[", re.ASCII)
"""How lines of stacks and banners begin."""
_TASK = r"\[?rank\s?\d{1,6}\]?:|\[?\d{1,6}\]?:\s|\[\d{1,6},\d{1,6}\]<\w{1,9}>:|\(\w{1,20}\ pid=\d{1,9}[^)]{0,60}\)"
_PREFIX = re.compile(rf"(?:\s|{_TASK}|[│|]\s|>\s)*")
_TASK_ONLY = re.compile(rf"(?:{_TASK}\ ?)?")
"""The prefix that launchers write before each line of a task."""
_GUESS = re.compile(
    r"\b(?:could|can|may|might|often|usually|probably|perhaps)(?: also)?(?: be)? (?:caused by|due to|because)"
    r"|\b(?:can|may|might|could|often|usually|probably) (?:also )?(?:indicate|mean|suggest)s?\b"
    r"|\b(?:potential|possible|probable|common) (?:root )?(?:causes?|reasons?)\b"
)
"""How programs begin a guess about the reason."""
_VALUE = re.compile(
    r"\berrors?\b[^:=]{0,20}[:=]\s{0,8}[-+]?\d{1,12}\.\d{0,16}(?:e[-+]?\d{1,3})?(?:[\s,;)]|$)"
)
"""How a line gives the value of an error ("max error: 1.2e-05"), which is not a failure."""
_LEVELS = frozenset({"debug", "info", "warn", "warning"})
_LEVEL_WITHIN = 80
"""Characters from the start of a line in which a log level counts; further on, it is part of the message."""
_SEVERE = re.compile(r"\W{0,3}(?:error|fatal|critical|severe)\b\W")
"""A line that begins with such a level has no other one ("ERROR: qsub -q debug ...")."""
_MILD = re.compile(r"\[?[diw]\d{4} \d\d:|\[[diw] |[\d:. -]{8,40}: [diw] ")
"""How Google's, PyTorch's and TensorFlow's logs write a level below an error: by its first letter."""
_WARNED = "warning:"
"""How a line ends whose warning is the line below it."""
_NEIGHBOURS = 10
"""Lines: a lost connection that stands so close above a failure of NCCL is between ranks."""
_RAISED = re.compile(r"[a-z_][\w.]{2,120}(?:: |$)", re.ASCII)
"""The form of the line after the stack of a Python exception."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that indicates a kind."""

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
    excuses: dict[str, list[Pattern]] = field(default_factory=dict)
    """For each line examined, the patterns by which it is ignored."""

    def line_of(self, at: int) -> int:
        return bisect_right(self.ends, at - 1) if at else 0

    def start_of(self, line: int) -> int:
        """The start of a line; for the line after the last one, the end of the text."""
        if line > len(self.ends):
            return len(self.lower)
        return self.ends[line - 1] + 1 if line else 0

    def part(self, at: int) -> tuple[int, int]:
        """The start and end of the line, or of its part between carriage returns."""
        first = max(self.lower.rfind("\n", 0, at), self.lower.rfind("\r", 0, at)) + 1
        ends = [end for end in (self.lower.find("\n", at), self.lower.find("\r", at)) if end >= 0]
        return first, min(ends, default=len(self.lower))

    def evidence(self, first: int, end: int) -> str:
        return " ".join(self.original[first:end].split("\n")).strip()[:_LONGEST_EVIDENCE]


def find_matches(
    text: str, catalogue: Catalogue, *, clock: Callable[[], float] = time.thread_time
) -> list[Match]:
    """The lines that may name a cause. After SECONDS of CPU time, only those found so far; a busy node finds as many."""
    until = clock() + SECONDS
    body = _body(text)
    last = _last_lines(body)
    near = last[-NEAR_END] if len(last) >= NEAR_END else 0
    earliest = len(body.ends) - WENT_ON
    over = max((_line(body, p) for p in catalogue.success), default=-1)
    tail = body.start_of(max(near, over + 1))
    very_end = max(tail, body.start_of(last[-VERY_END])) if len(last) >= VERY_END else tail
    found: dict[tuple[int, str], Match] = {}
    for match in (*_by_numbers(body, tail, catalogue), *_by_traceback(body, tail, catalogue)):
        found.setdefault((match.line, match.rule.kind), match)
    # Those near the end take little time and are never skipped.
    for start, rules_there in (
        (very_end, catalogue.endings),
        (tail, catalogue.likely),
        (0, catalogue.certain),
    ):
        for key, rules in rules_there.candidates(body.lower[start:]):
            if clock() > until:
                break
            for match in _by_patterns(body, key, rules, start, catalogue):
                known = found.get((match.line, match.rule.kind))
                if known is None or match.rule.rank < known.rule.rank or match.rule.certain:
                    found[match.line, match.rule.kind] = match
    for match in _before_the_end(body, list(found.values()), last, catalogue):
        found.setdefault((match.line, match.rule.kind), match)
    named = {match.line for match in found.values() if match.rule.kind != _GENERAL}
    return [
        match
        for match in found.values()
        if (match.rule.rank < EXHAUSTED or match.line >= earliest)
        and (match.rule.kind != _GENERAL or match.rule.certain or match.line not in named)
    ]


def root_cause(matches: Sequence[Match]) -> Match | None:
    """Of the matches that belong together, the last line of the kind that is the root of the others."""
    if not matches:
        return None
    last = max(match.line for match in matches)
    together = [
        m for m in matches if m.line >= last - TOGETHER or (m.rule.certain and m.rule.rank < EXHAUSTED)
    ]
    root = min(together, key=lambda m: (m.rule.rank, -m.line))
    if not CRASHED <= root.rule.rank < CONSEQUENCE:
        return root
    # Of several ways to end, the first made the others happen.
    speaking = (root.rule.kind, _EXCEPTION)
    ends = [m for m in together if CRASHED <= m.rule.rank < ABORTED or m.rule.kind in speaking]
    first = min(ends, key=lambda m: (m.line, m.rule.rank))
    if first.rule.kind == "network":
        close = [m for m in ends if m.rule.kind == "nccl" and m.line <= first.line + _NEIGHBOURS]
        first = min(close, key=lambda m: (m.line, m.rule.rank), default=first)
    same = [m for m in ends if m.rule.kind == first.rule.kind]
    return min(same, key=lambda m: (m.rule.rank, -m.line))


def _body(text: str) -> _Text:
    plain = _COLOUR.sub("", text)
    lower = plain.lower()
    if len(lower) != len(plain):  # a few letters become two, but positions must agree
        plain = lower
    return _Text(lower, plain, [end.start() for end in _LINE_END.finditer(lower)])


def _last_lines(body: _Text) -> list[int]:
    """The numbers of the last lines, at most NEAR_END, that are neither empty nor part of a stack or a banner."""
    found: list[int] = []
    end = len(body.lower)
    for number in range(len(body.ends), -1, -1):
        start = body.start_of(number)
        line = body.lower[start : min(end, start + _LONGEST_LINE)]
        if line.strip() and not _FRAME.match(line):
            found.append(number)
            if len(found) == NEAR_END:
                break
        end = start - 1
    return found[::-1]


def _by_patterns(
    body: _Text, key: str, rules: list[Rule], tail: int, catalogue: Catalogue
) -> Iterator[Match]:
    """Lines from this position on that match one of the patterns with this key."""
    for at in _occurrences(body.lower, key, tail):
        first, end = body.part(at)
        above = body.lower[max(0, first - _LEVEL_WITHIN) : first].rstrip()
        if at - first > _LONGEST_LINE or above.endswith(_WARNED):
            continue
        line = _bare(body.lower[first : min(end, first + _LONGEST_LINE)])
        guess = _GUESS.search(line)
        asserted = line[: guess.start()] if guess else line
        for rule in rules:
            # without its guesses ("this may be caused by ..."), unless the pattern is about one of them
            heeded = line if guess and _GUESS.search(rule.pattern.text) else asserted
            if rule.pattern.matches(heeded) and not _excused(body, line, rule, catalogue):
                yield Match(rule, body.line_of(at), body.evidence(first, end))


def _before_the_end(
    body: _Text, matches: list[Match], last: list[int], catalogue: Catalogue
) -> Iterator[Match]:
    """The program's last words above the first line that only reports its end, such as a launcher's."""
    reports = [match.line for match in matches if match.rule.rank >= CONSEQUENCE]
    if not reports or len(reports) < len(matches):
        return  # something else is more specific
    first = min(reports)
    above = [line for line in last if line < first][-VERY_END:]
    if not above:
        return
    start, end = body.start_of(above[0]), body.start_of(first)
    for key, rules in catalogue.endings.candidates(body.lower[start:end]):
        yield from (m for m in _by_patterns(body, key, rules, start, catalogue) if m.line < first)


def _by_numbers(body: _Text, tail: int, catalogue: Catalogue) -> Iterator[Match]:
    """Lines from this position on with an exit code, a signal or an errno value that indicates a kind."""
    for number in find_numbers(body.lower, tail):
        rule = catalogue.numbers.get((number.meaning, number.value))
        if rule is None:
            continue
        first, end = body.part(number.start)[0], body.part(number.end)[1]
        line = _bare(body.lower[first : min(end, first + _LONGEST_LINE)])
        if not _excused(body, line, rule, catalogue):
            yield Match(rule, body.line_of(number.start), body.evidence(first, end))


def _by_traceback(body: _Text, tail: int, catalogue: Catalogue) -> Iterator[Match]:
    """The line below each Python stack, whatever its exception is called."""
    rule = next((r for r in catalogue.rules if r.kind == _EXCEPTION and r.rank < CONSEQUENCE), None)
    for count, at in enumerate(_occurrences(body.lower, _TRACEBACK, tail)):
        if rule is None or count >= _MOST_TRACEBACKS:
            return
        number = body.line_of(at)
        for below in range(number + 1, min(number + _LONGEST_STACK, len(body.ends) + 1)):
            first, end = body.part(body.start_of(below))
            line = _TASK_ONLY.sub("", body.lower[first : min(end, first + _LONGEST_LINE)], count=1)
            if not line.strip() or line[0].isspace():
                continue
            if _RAISED.match(line) and not _excused(body, line, rule, catalogue):
                yield Match(rule, below, body.evidence(first, end))
            break


def _occurrences(text: str, key: str, tail: int = 0) -> Iterator[int]:
    """The last positions of a piece of text from this position on, the last first."""
    at = len(text)
    for _ in range(_MOST_OCCURRENCES):
        at = text.rfind(key, tail, at)
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


def _excused(body: _Text, line: str, rule: Rule, catalogue: Catalogue) -> bool:
    """Whether the kind or all kinds ignore such a line, unless the pattern itself asks for it."""
    if any(pattern.matches(line) for pattern in rule.excepted):
        return True
    if (rule.kind == _GENERAL and _VALUE.search(line)) or (not rule.certain and _MILD.match(line)):
        return True
    if line not in body.excuses:
        start = "" if _SEVERE.match(line) else line[:_LEVEL_WITHIN]
        body.excuses[line] = [
            pattern
            for pattern in catalogue.harmless
            if pattern.matches(start if pattern.text.strip() in _LEVELS else line)
        ]
    asked = f" {rule.pattern.text} "
    return any(not pattern.matches(asked) for pattern in body.excuses[line])
