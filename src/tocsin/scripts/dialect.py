"""The options of a scheduler as data: one dialect per scheduler, all read by the same code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tocsin.scripts.options import Directive, Locate, OptionTable
from tocsin.scripts.request import Reader, Value
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Place, Splitter, Word, directive_words

__all__ = ["Dialect", "Extension", "NewOption", "backslash_continuation", "list_item"]

Parts = Callable[[Directive, Word, Locate], Iterable[Directive]]
"""From an option and its value to the options that it expands to."""


def _never(_line: str) -> str | None:
    return None


def backslash_continuation(line: str) -> str | None:
    """A trailing backslash continues on the next line."""
    return "" if line.endswith("\\") else None


class NewOption(NamedTuple):
    """How to write an option that the script does not have yet."""

    text: str
    """`{}` stands for the value."""
    per: str = ""
    unless: tuple[str, ...] = ()
    """Not allowed next to options that start with one of these."""


class Extension(NamedTuple):
    """How to add a field to an existing option."""

    option: str
    """Start of the name of that option."""
    text: str
    """Text to append; `{}` stands for the value."""
    per: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the directives of one scheduler are read and written."""

    scheduler: Scheduler
    prefix: str
    """Start of a new directive line."""
    commands: tuple[str, ...]
    """The submit commands."""
    table: OptionTable
    readers: Mapping[str, Reader]
    """Text to value, for fields that need more than plain text or a number."""
    writers: Mapping[str, Callable[[Value], str]]
    """Value to text, for the same fields."""
    new_options: Mapping[str, NewOption]
    """The option to add for a field that no option sets yet."""
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    """Fields to append to an existing option instead."""
    checks: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    """By option name: raises InputError for a value that the scheduler refuses."""
    refuses: bool = False
    """Whether it refuses the whole submission because of an unreadable value."""
    replaced: Mapping[str, str | None] = field(default_factory=dict)
    """Options that set several fields; a later one replaces all fields of an earlier one. The value is their first field."""
    parts: Mapping[str, Parts] = field(default_factory=dict)
    """By option name: splits a value that sets more than one field, such as a list of resources."""
    continuation: Callable[[str], str | None] = field(default=_never)
    """Text between a line and its continuation; None for a complete line."""
    one_cpu_per_task: bool = True
    """A task without a CPU count gets one CPU; False if jobs get whole nodes."""
    words: Splitter = field(default=directive_words)

    def split(self, directive: Directive, locate: Locate) -> Iterable[Directive]:
        """The options that one option expands to; most stand for themselves."""
        parts = self.parts.get(directive.option)
        return (
            (directive,)
            if parts is None or directive.word is None
            else parts(directive, directive.word, locate)
        )

    def write(self, name: str, value: Value) -> str:
        writer = self.writers.get(name)
        return writer(value) if writer else str(value)


def list_item(
    directive: Directive,
    locate: Locate,
    name: str,
    value: Word,
    target: str | None,
    per: str = "",
    *,
    around: Word | None = None,
) -> Directive:
    """One resource of a list with its place; `around` covers its name too."""
    option = f"{directive.option} {name}" if name else directive.option
    place = _located(value, locate)
    return Directive(
        directive.line,
        option,
        value.text,
        target,
        per,
        place,
        _located(around, locate) if around else None,
        value,
    )


def _located(word: Word, locate: Locate) -> Place | None:
    columns = word.columns
    if not columns or columns[-1] - columns[0] != len(columns) - 1:
        return None
    return locate(columns[0], columns[-1] + 1)
