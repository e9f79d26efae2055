"""Edits one directive of a script: only the value is replaced, everything else stays."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tocsin.core.errors import ScriptError
from tocsin.scripts.request import Value, in_unit_of
from tocsin.scripts.script import Script, parse
from tocsin.scripts.text import split_lines
from tocsin.scripts.words import Place

__all__ = ["Edit", "apply", "edit"]

_ROUNDING = {"time_limit": 60, "time_min": 60, "req_memory": 1024**2}
"""Some schedulers count in minutes or megabytes; other values are rounded up."""


class Edit(NamedTuple):
    """Replace line `line` (from 1), now `old`, by `new`; without `old`, insert `new` as that line."""

    line: int
    old: str | None
    new: str


def edit(script: Script, field: str, value: Value) -> Edit:
    """The edit that makes the script request `value`, in its scheduler's syntax."""
    if len(script.components) > 1:
        raise ScriptError(
            "cannot edit the script of a heterogeneous job: it is unknown which component to change"
        )
    for change in _candidates(script, field, value):
        if _requests(
            parse(apply(script.text, [change]), scheduler=script.scheduler, zone=script.zone), field, value
        ):
            return change
    raise ScriptError(
        f"cannot set {field} to {value!r} in this {script.dialect.scheduler.value} script; edit its header by hand"
    )


def apply(text: str, edits: Iterable[Edit]) -> str:
    """The text with these edits; no two may change the same line."""
    changes = sorted(edits, key=lambda change: (change.line, change.old is not None))
    lines = split_lines(text)
    touched: set[int] = set()
    for change in reversed(changes):
        at = change.line - 1
        if change.old is None:
            if not 0 <= at <= len(lines):
                raise ScriptError(f"cannot insert at line {change.line}: the script has {len(lines)} lines")
            lines.insert(at, change.new)
        elif not 0 <= at < len(lines) or (lines[at] != change.old and at not in touched):
            raise ScriptError(f"line {change.line} has changed since it was read; read the script again")
        elif at in touched:
            raise ScriptError(
                f"two edits of line {change.line}; apply one, read the script again, then apply the other"
            )
        else:
            lines[at] = change.new
            touched.add(at)
    return "\n".join(lines)


def _candidates(script: Script, field: str, value: Value) -> Iterator[Edit]:
    """Possible edits, least intrusive first: replace the value, the option, extend another option, add a line."""
    dialect = script.dialect
    lines = split_lines(script.text)
    given = [directive for directive in script.directives if directive.line]
    setting = [directive for directive in given if directive.field == field]
    new_option = dialect.new_options.get(field)
    text = _value_text(script, field, value, new_option.per) if new_option else None
    if setting:
        last = setting[-1]
        amount = _value_text(script, field, value, last.per)
        if last.place and amount is not None:
            yield _replaced(lines, last.place, amount)
        if last.whole and new_option and text is not None:
            # inside a list (-l pmem=2gb,...) the dash is not repeated
            listed = " " in last.option and "=" in new_option.text
            option = new_option.text.rpartition(" ")[2].strip('"') if listed else new_option.text
            yield _replaced(lines, _with_quote(lines, last.whole), option.format(text))
    elif extension := dialect.extensions.get(field):
        amount = _value_text(script, field, value, extension.per)
        places = (d.whole or d.place for d in given if d.option.startswith(extension.option))
        after = [place for place in places if place]
        if amount is not None and after:
            yield _replaced(lines, after[-1]._replace(start=after[-1].end), extension.text.format(amount))
    beside = [d for d in given if new_option and new_option.unless and d.option.startswith(new_option.unless)]
    if new_option and text is not None and not beside:
        yield _inserted(script, lines, dialect.prefix + new_option.text.format(text))


def _value_text(script: Script, field: str, value: Value, per: str) -> str | None:
    """The value for an option that counts per job, node, task or CPU; None if it does not divide evenly."""
    amount = in_unit_of(field, per, value, script.request)
    return None if amount is None else script.dialect.write(field, amount)


def _replaced(lines: list[str], place: Place, text: str) -> Edit:
    old = lines[place.line - 1]
    return Edit(place.line, old, old[: place.start] + text + old[place.end :])


def _with_quote(lines: list[str], place: Place) -> Place:
    """Include the closing quote of a quoted value."""
    line = lines[place.line - 1]
    written = line[place.start : place.end]
    for quote in "\"'":
        if written.count(quote) % 2 and line[place.end : place.end + 1] == quote:
            return place._replace(end=place.end + 1)
    return place


def _inserted(script: Script, lines: list[str], text: str) -> Edit:
    """A new directive after the last one or the shebang, with the same line ending."""
    after = script.last_directive or (1 if script.text.startswith("#!") else 0)
    before = lines[after - 1] if after else lines[0]
    if script.last_directive:
        text = before[: len(before) - len(before.lstrip())] + text  # same indentation as the line before
    return Edit(after + 1, None, text + ("\r" if before.endswith("\r") else ""))


def _requests(script: Script, field: str, value: Value) -> bool:
    got = script.request.get(field)
    if type(got) is int and type(value) is int:
        return value <= got < value + _ROUNDING.get(field, 1)
    return got == value
