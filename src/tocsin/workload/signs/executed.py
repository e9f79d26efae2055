"""What the lines of a script execute, without text that is only printed or searched for.

A warning to users, an administrator's `ps | grep miner`, a course's text in a here-document: such words are not misuse.
Text counts as printed only if nothing can run it: it goes to people, or to a document that the script never uses
again, by a command that the script has not redefined.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tocsin.workload.normal import Commands
from tocsin.workload.signs.documents import HERE, as_redirection, document_ends, text_ends
from tocsin.workload.signs.facts import Context, script_context
from tocsin.workload.signs.inert_commands import (
    FILTERS,
    INERT,
    INERT_IN,
    SEARCHES,
    SHOWS,
    VIEWERS,
    goes_to_people,
    only_prints,
)
from tocsin.workload.signs.shown import harmless_python, printers, shown_variables, variable_of
from tocsin.workload.signs.simple_commands import PREFIXES, Command, simple_commands, unquoted

__all__ = ["executed", "executed_commands"]

_TRAP = re.compile(r"\s*trap\s+(?:'(?P<a>[^']*)'|\"(?P<b>[^\"$`]*)\")\s+[A-Z0-9 ]{1,60};?\s*$")
_CASE = re.compile(
    r"\bcase\s.{1,200}?\sin\s+[^()`$;&]{1,400}\)|^\(?(?:\"[^\"$`]*\"|'[^']*'|[^\s()'\"`$;&<>])+\)(?=\s|$)"
)
"""The patterns of a `case`, with the line that begins it or alone."""
_ASSIGNS = re.compile(r"\s*\S+\s*=")
_SETS = re.compile(r"\s*(?:(?:local|readonly|typeset|declare)\s+(?:-[ar]\s+)?)?(?:(\w+)=|for\s+(\w+)\s+in\s)")
_LONGEST_PIPE = 10
_PASSED_ON = ("|", "<", ">", "&", ";", "`", "$(")
_PATTERN = re.compile(
    r"\b(?:[efzp]|bz|xz)?grep\s+(?:-[\w-]{1,20}(?:=\S{1,60})?\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}'|[^\s|;&\"'<>()]{1,200})"
    r"|\b(?:rg|ag|ack)\s+(?:-[\w-]{1,20}(?:=\S{1,60})?\s+){0,6}(?:\"[^\"]{0,400}\"|'[^']{0,400}'|[^\s|;&\"'<>()]{1,200})"
    r"|\b(?:pgrep|pkill|killall|pidof)\s+(?:-[\w-]{1,20}\s+){0,6}[\w.*-]{1,100}"
    r"|-i?name\s+(?:\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s;|&]{1,200})"
    r"|\b[gm]?awk\s+(?:-\S{1,20}\s+){0,3}'[^'/]{0,80}/[^/']{0,200}/"
    r"|--comment(?:=|\s+)(?:\"[^\"$`]{0,400}\"|'[^']{0,400}')"
    r"|\bcurl\s[^;|&\"'`$]{0,400}\s(?:-d|--data(?:-raw|-binary)?|--json)[ =](?:\"(?![^\"]*method)[^\"$`]{0,2000}\"|'(?![^']*method)[^']{0,2000}')"
    r"|\bsed\s+(?:-\w{1,9}\s+){0,3}(?:\"/[^\"]{0,200}/[dp]\"|'/[^']{0,200}/[dp]')"
)


@lru_cache(maxsize=4)  # several steps need the same script in a row
def executed_commands(
    script: Commands, reading: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
) -> tuple[str, ...]:
    """What each command of a script executes, wherever it occurs; a line may be text here and a command there."""
    reading = reading or executed
    if not script.sources:
        return reading(script.lines)
    found: dict[str, str] = {}
    for source in script.sources:
        for line, act in zip(source, reading(source), strict=True):
            if len(act) >= len(found.get(line, "")):
                found[line] = act
    return tuple([found.get(line, line) for line in script.lines])


@lru_cache(
    maxsize=128
)  # several steps need the same lines; a script may hold dozens of texts that it unpacks
def executed(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines in order, each reduced to what it executes; one that executes nothing is empty."""
    ends = document_ends(lines)
    context = _with_names(script_context(lines), lines, ends)
    found = list(lines)
    for first, after, body in _statements(lines, ends, context):
        if body:  # a here-document that people read
            found[first:after] = [""] * (after - first)
        elif after - first > 1:  # one command with a quoted text of several lines
            if not _act("\n".join(lines[first:after]), context, captured=context.captures(first, after)):
                found[first:after] = [""] * (after - first)
        elif INERT_IN.search(lines[first]):
            found[first] = _act(lines[first], context, captured=context.captures(first, after))
    return tuple(found)


def _with_names(context: Context, lines: Sequence[str], ends: Mapping[int, int]) -> Context:
    """Add the functions and variables that only show text; none if it is unclear what runs."""
    if context.captured is None or context.defined is None:
        return context
    passed = frozenset(
        place
        for first, end in ends.items()
        if _passes_on(HERE.sub(" ", lines[first], count=1), context)
        for place in range(first + 1, end)
    )
    context = replace(context, captured=context.captured | passed)
    cases = any("case" in line and " in" in line for line in lines)
    logged = not (context.any_file or context.used)  # otherwise a log may be run
    context = replace(context, printers=printers(lines, logged=logged), cases=cases)

    def only_shows(place: int, name: str, shown: frozenset[str]) -> bool:
        line, guess = lines[place], replace(context, shown=shown)
        if _only_fills(line, guess):
            return True
        return not re.search(rf"\b{name}\b", _act(line, guess, captured=context.captures(place, place + 1)))

    return replace(context, shown=shown_variables(lines, only_shows))


def _statements(
    lines: Sequence[str], ends: Mapping[int, int], context: Context
) -> Iterator[tuple[int, int, bool]]:
    """First line, line after, and whether these are a here-document's lines for people; other lines one by one.

    A quoted text or a here-document without an end does not count: then each of its lines is a command.
    """
    closing = text_ends(lines)
    place = 0
    while place < len(lines):
        if (after := closing.get(place)) is not None:
            yield place, after, False
            place = after
            continue
        yield place, place + 1, False
        end = ends.get(place)
        if end is not None:
            if (
                not context.captures(place, place + 1)
                and _only_shows(lines[place], lines[place + 1 : end], context)
            ) or _only_fills(lines[place], context):
                yield place + 1, end, True
            else:  # input of another program is its commands
                yield from ((inside, inside + 1, False) for inside in range(place + 1, end))
            place = end
        place += 1


def _only_fills(line: str, context: Context) -> bool:
    """Whether a here-document that begins in this line becomes a variable that is only shown."""
    return bool(context.shown) and variable_of(HERE.sub("", line, count=1)) in context.shown


def _only_shows(line: str, body: Sequence[str], context: Context) -> bool:
    """Whether a here-document that begins in this line goes to people, or to a document that they read."""
    rest = HERE.sub(" ", as_redirection(line), count=1)
    first, *others = simple_commands(rest)
    words = [word for word in first.text.split() if word not in PREFIXES and not word.endswith("()")]
    head = words[0] if words else ""
    if re.fullmatch(r"python[\d.]*", head) and words[1:] in ([], ["-"]) and not others:
        return not context.redefines(head) and harmless_python(body)
    if head not in SHOWS or context.redefines(head, *(other.head for other in others)):
        return False
    if any(other.head not in VIEWERS | FILTERS for other in others):
        return False
    safe = context.safe(rest)
    return safe is not None and not any(mark in safe.replace("|", "", len(others)) for mark in _PASSED_ON)


def _passes_on(command: str, context: Context) -> bool:
    """Whether the output of a command goes anywhere but to people or to a document that they read."""
    safe = context.safe(command)
    return safe is None or any(mark in safe for mark in ("|", ">", "$(", "`"))


def _act(line: str, context: Context, *, captured: bool) -> str:
    """The commands of a line that do something."""
    if context.cases and ")" in line:
        line = _CASE.sub(" ", line)
    commands = simple_commands(line)
    kept = [
        command.text
        for place, command in enumerate(commands)
        if not _is_idle(command, commands[place + 1 : place + _LONGEST_PIPE], context, captured=captured)
    ]
    return _PATTERN.sub(" ", "".join(kept)).strip()


def _is_idle(command: Command, following: Sequence[Command], context: Context, *, captured: bool) -> bool:
    """Whether a command only prints, searches or compares."""
    text, head = command.text, command.head
    after = following[0].head if following else ""
    if _sets_shown_text(text, context):
        return True
    if "$(" in text or "`" in text or context.redefines(head, after):
        return False
    if head == "trap" and (trapped := _TRAP.match(text)):
        return not _act(trapped["a"] or trapped["b"] or "", context, captured=captured)
    if head in INERT:
        return not _ASSIGNS.match(text)  # in Python, a name
    if (
        captured
        or not only_prints(command, prints=context.prints(head))
        or (head == "printf" and " -v" in text)
    ):
        return False
    if "<<" in text and not ("<<<" in text and head in VIEWERS | SEARCHES):
        return False
    if not goes_to_people(command, following):
        return False
    safe = context.safe(as_redirection(text))
    return safe is not None and ">" not in unquoted(safe)


def _sets_shown_text(text: str, context: Context) -> bool:
    """Whether a command gives a variable text that is only shown."""
    if not context.shown or "$(" in text or "`" in text:
        return False
    found = _SETS.match(text)
    return found is not None and (found[1] or found[2]) in context.shown
