"""A change to a script's request, written back as one line: the value alone is replaced, all else stays."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tocsin.core.errors import ScriptError
from tocsin.scripts.request import Value, in_unit_of
from tocsin.scripts.script import Script, parse
from tocsin.scripts.text import split_lines
from tocsin.scripts.words import Place

__all__ = ["Edit", "apply", "edit"]

_ROUNDING = {"time_limit": 60, "time_min": 60, "req_memory": 1024**2}
"""Some schedulers count in minutes or megabytes; a value between is rounded up."""


class Edit(NamedTuple):
    """Line `line` (from 1) was `old` and becomes `new`; without `old`, `new` is put in as that line."""

    line: int
    old: str | None
    new: str


def edit(script: Script, field: str, value: Value) -> Edit:
    """The change that makes the script ask for `value`, in its own scheduler's words."""
    if len(script.components) > 1:
        raise ScriptError("the script is of a heterogeneous job; which component to change is not known")
    for change in _candidates(script, field, value):
        if _asks(parse(apply(script.text, [change]), zone=script.zone), field, value):
            return change
    raise ScriptError(
        f"{field} cannot be set to {value!r} in this {script.dialect.scheduler.value} script; change its header by hand"
    )


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with these changes; each must fit the text, and no two may change the same line."""
    changes = sorted(edits, key=lambda change: (change.line, change.old is not None))
    lines = split_lines(text)
    touched: set[int] = set()
    for change in reversed(changes):
        at = change.line - 1
        if change.old is None:
            if not 0 <= at <= len(lines):
                raise ScriptError(f"there is no line {change.line} to put a line in before")
            lines.insert(at, change.new)
        elif not 0 <= at < len(lines) or (lines[at] != change.old and at not in touched):
            raise ScriptError(
                f"line {change.line} is not what the change was made for; read the script again"
            )
        elif at in touched:
            raise ScriptError(
                f"two changes to line {change.line}; apply one, read the script again, then the other"
            )
        else:
            lines[at] = change.new
            touched.add(at)
    return "\n".join(lines)


def _candidates(script: Script, field: str, value: Value) -> Iterator[Edit]:
    """Ways to say it, the least intrusive first: the value, the option, more of another option, a new line."""
    dialect = script.dialect
    lines = split_lines(script.text)
    given = [directive for directive in script.directives if directive.line]
    setting = [directive for directive in given if directive.field == field]
    fresh = dialect.fresh.get(field)
    text = _spelled(script, field, value, fresh.per) if fresh else None
    if setting:
        last = setting[-1]
        amount = _spelled(script, field, value, last.per)
        if last.place and amount is not None:
            yield _replaced(lines, last.place, amount)
        if last.whole and fresh and text is not None:
            # inside a list (-l pmem=2gb,...) the option's own dash is not repeated
            listed = " " in last.option and "=" in fresh.text
            option = fresh.text.rpartition(" ")[2].strip('"') if listed else fresh.text
            yield _replaced(lines, _with_quote(lines, last.whole), option.format(text))
    elif joined := dialect.joined.get(field):
        amount = _spelled(script, field, value, joined.per)
        places = (d.whole or d.place for d in given if d.option.startswith(joined.option))
        after = [place for place in places if place]
        if amount is not None and after:
            yield _replaced(lines, after[-1]._replace(start=after[-1].end), joined.text.format(amount))
    beside = [d for d in given if fresh and fresh.unless and d.option.startswith(fresh.unless)]
    if fresh and text is not None and not beside:
        yield _inserted(script, lines, dialect.prefix + fresh.text.format(text))


def _spelled(script: Script, field: str, value: Value, per: str) -> str | None:
    """The value as text for an option that counts it per job, node, task or CPU; None when it does not divide."""
    amount = in_unit_of(field, per, value, script.request)
    return None if amount is None else script.dialect.write(field, amount)


def _replaced(lines: list[str], place: Place, text: str) -> Edit:
    old = lines[place.line - 1]
    return Edit(place.line, old, old[: place.start] + text + old[place.end :])


def _with_quote(lines: list[str], place: Place) -> Place:
    """An option whose value is quoted ends after the quote."""
    line = lines[place.line - 1]
    written = line[place.start : place.end]
    for quote in "\"'":
        if written.count(quote) % 2 and line[place.end : place.end + 1] == quote:
            return place._replace(end=place.end + 1)
    return place


def _inserted(script: Script, lines: list[str], text: str) -> Edit:
    """A new directive after the last one, or after the shebang; its line ends as the one before it."""
    after = script.last_directive or (1 if script.text.startswith("#!") else 0)
    before = lines[after - 1] if after else lines[0]
    if script.last_directive:
        text = before[: len(before) - len(before.lstrip())] + text  # indented as its neighbour
    return Edit(after + 1, None, text + ("\r" if before.endswith("\r") else ""))


def _asks(script: Script, field: str, value: Value) -> bool:
    got = script.request.get(field)
    if type(got) is int and type(value) is int:
        return value <= got < value + _ROUNDING.get(field, 1)
    return got == value
