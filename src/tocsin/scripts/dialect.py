"""What a scheduler's options are, as data: one dialect for each scheduler, all read by the same code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tocsin.scripts.options import Directive, Locate, OptionTable
from tocsin.scripts.request import Reader, Value
from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.words import Place, Splitter, Word, directive_words

__all__ = ["Dialect", "Fresh", "Joined", "after_backslash", "part_of", "whole"]

Parts = Callable[[Directive, Locate], Iterable[Directive]]


def whole(directive: Directive, _locate: Locate) -> Iterable[Directive]:
    """An option that stands for itself."""
    return (directive,)


def _never(_line: str) -> str | None:
    return None


def after_backslash(line: str) -> str | None:
    """A backslash at the end joins the next line."""
    return "" if line.endswith("\\") else None


class Fresh(NamedTuple):
    """A new option."""

    text: str
    """With {} for the value."""
    per: str = ""
    unless: tuple[str, ...] = ()
    """Not beside an option whose name begins so."""


class Joined(NamedTuple):
    """More of an option that is there."""

    option: str
    """The beginning of its name."""
    text: str
    """What follows it, with {} for the value."""
    per: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one scheduler's directives are read and written."""

    scheduler: Scheduler
    prefix: str
    """What a new directive line begins with."""
    commands: tuple[str, ...]
    """The submit commands."""
    table: OptionTable
    readers: Mapping[str, Reader]
    """From text to value, for fields whose text is not plain."""
    writers: Mapping[str, Callable[[Value], str]]
    """From value to text, for the same."""
    fresh: Mapping[str, Fresh]
    """A new option for a field that none sets yet."""
    joined: Mapping[str, Joined] = field(default_factory=dict)
    """A field that is rather added to an option that is there."""
    checks: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    """What raises InputError for a value that is refused, by the option's name."""
    refuses: bool = False
    """It refuses the whole submission for a value that it cannot read."""
    replaced: Mapping[str, str | None] = field(default_factory=dict)
    """Options that stand for several fields and replace an earlier one in all of them; with the field that comes first."""
    parts: Parts = field(default=whole)
    """Takes a list of resources apart."""
    goes_on: Callable[[str], str | None] = field(default=_never)
    """What stands between a line that is not finished and the next one; None for a finished line."""
    cpu_for_each_task: bool = True
    """Tasks are what CPUs are asked for with; False where jobs get whole nodes."""
    words: Splitter = field(default=directive_words)

    def write(self, name: str, value: Value) -> str:
        writer = self.writers.get(name)
        return writer(value) if writer else str(value)


def part_of(
    directive: Directive,
    locate: Locate,
    name: str,
    value: Word,
    target: str | None,
    per: str = "",
    *,
    around: Word | None = None,
) -> Directive:
    """One resource of a list, with its own place; `around` is the resource with its name."""
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
