"""Finds the root cause in the text of one output file: certain lines first, others only near its end."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tocsin.causes.catalogue import Catalogue, Rule
from tocsin.causes.lines import (
    GUESS,
    adjusted,
    bare,
    closes,
    gives_value,
    is_call,
    is_mild,
    levelled,
    passed_until,
    quotes,
    r_warnings,
    raised,
    recovers,
    speaks_of_error,
    without_folders,
    without_task,
)
from tocsin.causes.numbers import find_numbers
from tocsin.causes.patterns import Pattern
from tocsin.causes.text import LONGEST_LINE, Text, explains_option, parse_text

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
_LONGEST_STACK = 400
_MOST_TRACEBACKS = 10
_EXCEPTION = "python_exception"
_GENERAL = "program_error"
_ABORT = "abort"
_REPORTED = (_GENERAL, _EXCEPTION, "bad_input")
"""Kinds of an error that the program reports in its own words: another kind on the same line says more."""
_TRACEBACK = "traceback (most recent call last)"
_LEVELS = frozenset({"debug", "info", "warn", "warning"})
_WARNED = ("warning:", " debug:", " info:")
"""How a line ends whose message, of this level, is the line below it."""
_WITHIN = 80
"""Characters above a line in which such an end is looked for."""
_NEIGHBOURS = 10
"""Lines: a lost connection that stands so close above a failure of NCCL is between ranks."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that indicates a kind."""

    rule: Rule
    line: int
    """Its number in the text, from 0 on."""
    text: str


def find_matches(
    text: str, catalogue: Catalogue, *, clock: Callable[[], float] = time.thread_time
) -> list[Match]:
    """The lines that may name a cause. After SECONDS of CPU time, only those found so far; a busy node finds as many."""
    until = clock() + SECONDS
    body = parse_text(text)
    last = body.last_lines(NEAR_END)
    near = last[-NEAR_END] if len(last) >= NEAR_END else 0
    earliest = len(body.ends) - WENT_ON
    over = max((_line(body, p) for p in catalogue.success), default=-1)
    if last and closes(bare(body.line(last[-1]))):
        over = last[-1]
    tail = body.start_of(max(near, over + 1))
    very_end = max(tail, body.start_of(last[-VERY_END])) if len(last) >= VERY_END else tail
    found: dict[tuple[int, str], Match] = {}
    for match in (*_by_numbers(body, tail, catalogue), *_by_traceback(body, body.start_of(near), catalogue)):
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
    sure = {match.line for match in found.values() if match.rule.certain and match.rule.kind not in _REPORTED}
    handled = _handled(body, body.start_of(near), last, catalogue)
    survived = {line for line, _ in found if line < len(body.ends) and recovers(bare(body.line(line + 1)))}
    warned = {
        number
        for first, end in r_warnings(body.lower, body.start_of(near))
        for number in range(body.line_of(first), body.line_of(end) + 1)
    }
    verdict = passed_until(body.lower, body.start_of(near))
    passed = body.line_of(verdict) if verdict >= 0 else -1
    return [
        match
        for match in found.values()
        if match.line > passed
        and (match.rule.certain or match.line not in handled | warned)
        and match.line not in survived
        and (match.rule.rank < EXHAUSTED or match.line >= earliest)
        and (match.rule.kind != _GENERAL or match.rule.certain or match.line not in named)
        and (match.rule.certain or match.rule.rank < EXHAUSTED or match.line not in sure)
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
    if root.rule.kind == _ABORT:
        return _stated(together) or root
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


def _stated(matches: Sequence[Match]) -> Match | None:
    """What the program itself reports above its abort: it stopped itself for this reason, whatever that is."""
    aborted = min(match.line for match in matches if match.rule.kind == _ABORT)
    above = [
        m for m in matches if m.rule.kind in _REPORTED and m.rule.rank < CONSEQUENCE and m.line < aborted
    ]
    return min(above, key=lambda m: (m.rule.rank, -m.line), default=None)


def _by_patterns(body: Text, key: str, rules: list[Rule], tail: int, catalogue: Catalogue) -> Iterator[Match]:
    """Lines from this position on that match one of the patterns with this key."""
    for at in body.occurrences(key, tail):
        first, end = body.part(at)
        above = body.lower[max(0, first - _WITHIN) : first].rstrip()
        if at - first > LONGEST_LINE or above.endswith(_WARNED):
            continue
        line = bare(body.examined(first, end))
        if is_call(line) or quotes(line) or explains_option(body, first):
            continue
        guess = GUESS.search(line)
        asserted = line[: guess.start()] if guess else line
        for rule in rules:
            # without its guesses ("this may be caused by ..."), unless the pattern is about one of them
            heeded = line if guess and GUESS.search(rule.pattern.text) else asserted
            if rule.pattern.matches(heeded) and _beside_folders(rule.pattern, heeded):
                meant = catalogue.subject(rule, without_folders(line))
                if not _excused(body, line, meant, catalogue):
                    yield Match(meant, body.line_of(at), body.evidence(first, end))


def _beside_folders(pattern: Pattern, line: str) -> bool:
    """Whether a pattern matches without the folders of paths, unless it is about a path itself."""
    return "/" in pattern.text or "/" not in line or pattern.matches(without_folders(line))


def _before_the_end(
    body: Text, matches: list[Match], last: list[int], catalogue: Catalogue
) -> Iterator[Match]:
    """The program's last words above the first line that only reports its end, such as a launcher's."""
    reports = [match.line for match in matches if match.rule.rank >= CONSEQUENCE or match.rule.kind == _ABORT]
    if not reports or len(reports) < len(matches):
        return  # something else is more specific
    first = min(reports)
    above = [line for line in last if line < first][-VERY_END:]
    if not above:
        return
    start, end = body.start_of(above[0]), body.start_of(first)
    for key, rules in catalogue.endings.candidates(body.lower[start:end]):
        yield from (m for m in _by_patterns(body, key, rules, start, catalogue) if m.line < first)


def _by_numbers(body: Text, tail: int, catalogue: Catalogue) -> Iterator[Match]:
    """Lines from this position on with an exit code, a signal or an errno value that indicates a kind."""
    for number in find_numbers(body.lower, tail):
        rule = catalogue.numbers.get((number.meaning, number.value))
        if rule is None:
            continue
        first, end = body.part(number.start)[0], body.part(number.end)[1]
        line = bare(body.examined(first, end))
        if not _excused(body, line, rule, catalogue):
            yield Match(rule, body.line_of(number.start), body.evidence(first, end))


def _by_traceback(body: Text, tail: int, catalogue: Catalogue) -> Iterator[Match]:
    """The line below each Python stack, whatever its exception is called."""
    rule = next((r for r in catalogue.rules if r.kind == _EXCEPTION and r.rank < CONSEQUENCE), None)
    for _, below in _exceptions(body, tail):
        first, end = body.part(body.start_of(below))
        line = body.examined(first, end)
        if rule is not None and not _excused(body, without_task(line), rule, catalogue):
            yield Match(rule, below, body.evidence(first, end))


def _handled(body: Text, tail: int, last: list[int], catalogue: Catalogue) -> set[int]:
    """Lines of exceptions that a warning or a retry above the stack reports, if the output goes on below them."""
    found = set()
    for header, below in _exceptions(body, tail):
        above = bare(body.line(header - 1)) if header else ""
        if (
            last[-1] > below
            and speaks_of_error(above)
            and (is_mild(above) or _excuses(body, above, catalogue))
        ):
            found.add(below)
    return found


def _exceptions(body: Text, tail: int) -> Iterator[tuple[int, int]]:
    """The numbers of the first line of each Python stack and of the line below it."""
    for at in islice(body.occurrences(_TRACEBACK, tail), _MOST_TRACEBACKS):
        number = body.line_of(at)
        for below in range(number + 1, min(number + _LONGEST_STACK, len(body.ends) + 1)):
            line = without_task(body.line(below))
            if not line.strip() or line[0].isspace():
                continue
            if raised(line):
                yield number, below
            break


def _line(body: Text, pattern: Pattern) -> int:
    """The last line that matches; -1 if none does."""
    for at in body.occurrences(pattern.key):
        first, end = body.part(at)
        if pattern.matches(bare(body.examined(first, end))):
            return body.line_of(at)
    return -1


def _excused(body: Text, line: str, rule: Rule, catalogue: Catalogue) -> bool:
    """Whether the kind or all kinds ignore such a line, unless the pattern itself asks for it."""
    if rule.excepted:
        asked_for = (rule.kind, line)
        if asked_for not in body.excepted:
            body.excepted[asked_for] = any(pattern.matches(line) for pattern in rule.excepted)
        if body.excepted[asked_for]:
            return True
    if (rule.kind == _GENERAL and gives_value(line)) or (
        not rule.certain and (is_mild(line) or adjusted(line))
    ):
        return True
    asked = f" {rule.pattern.text} "
    return any(not pattern.matches(asked) for pattern in _excuses(body, line, catalogue))


def _excuses(body: Text, line: str, catalogue: Catalogue) -> list[Pattern]:
    """The patterns by which all kinds ignore a line."""
    if line not in body.excuses:
        start = levelled(line)
        body.excuses[line] = [
            pattern
            for pattern in catalogue.harmless
            if pattern.matches(start if pattern.text.strip() in _LEVELS else line)
        ]
    return body.excuses[line]
