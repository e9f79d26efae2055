"""How a command speaks: rows in columns as sacct prints them, as `-P` text or JSON, and sentences for a person."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

import click

from tocsin.core.intake import Batch, Rejects

__all__ = [
    "Column",
    "Listing",
    "clock",
    "complain",
    "count",
    "number_of",
    "plain",
    "print_json",
    "print_table",
    "progress",
    "progress_bar",
    "say",
]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a listing; a negative width aligns left, as in sacct."""

    title: str
    value: Callable[[dict[str, Any]], str]
    width: int


@dataclass(frozen=True, slots=True)
class Listing:
    """How the rows of a command are asked for."""

    noheader: bool
    parsable2: bool
    as_json: bool

    def print_table(self, rows: Iterable[dict[str, Any]], columns: Sequence[Column]) -> None:
        print_table(rows, columns, header=not self.noheader, parsable=self.parsable2)


_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], "\N{REPLACEMENT CHARACTER}")


def plain(text: str) -> str:
    """Text that came from a job, safe to print: a name with an escape sequence in it must not steer a terminal.

    >>> plain("a\\x1b[2Jb")
    'a�[2Jb'
    """
    return text if text.isprintable() else text.translate(_CONTROL)


def say(sentence: str) -> None:
    """A message for a person: stderr, never mixed with data."""
    click.echo(plain(sentence), err=True)


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "job"), count(243306, "job")
    ('1 job', '243,306 jobs')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clock(at: int | None, zone: tzinfo) -> str:
    """An instant as sacct prints it; nothing where there is none."""
    return "" if at is None else datetime.fromtimestamp(at, zone).strftime("%Y-%m-%dT%H:%M:%S")


def number_of(name: str, digits: int = 0) -> Callable[[dict[str, Any]], str]:
    """The figure of that name in a row, for a column; nothing where there is none."""
    return lambda row: "" if row[name] is None else f"{row[name]:,.{digits}f}"


def complain(notes: Sequence[str], rejects: Rejects, name: str = "") -> None:
    """What was noted and rejected in what was read; `name` stands before each, where several things were."""
    for note in notes:
        say(f"note: {name}{note}")
    for reason, bad in rejects.counts.items():
        lines = rejects.lines.get(reason, [])
        shown = f"first at {', '.join(map(str, lines))}" if lines else ""
        if lines and reason in rejects.examples:
            shown += f"; line {lines[0]}: {rejects.examples[reason]}"
        say(f"rejected: {name}{count(bad, 'record')}: {reason}" + (f" ({shown})" if shown else ""))


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_table(
    rows: Iterable[dict[str, Any]], columns: Sequence[Column], *, header: bool, parsable: bool, end: str = ""
) -> None:
    """Fixed widths for eyes (a cut value ends in +), pipes for programs; `end` closes each line of those."""
    write = sys.stdout.write
    if parsable:
        if header:
            write("|".join(column.title for column in columns) + end + "\n")
        for row in rows:
            write("|".join(plain(column.value(row)) for column in columns) + end + "\n")
        return
    if header:
        write(" ".join(_fit(c.title, c.width, cut=False) for c in columns).rstrip() + "\n")
        write(" ".join("-" * abs(c.width) for c in columns) + "\n")
    for row in rows:
        write(" ".join(_fit(plain(c.value(row)), c.width) for c in columns).rstrip() + "\n")


def _fit(text: str, width: int, *, cut: bool = True) -> str:
    size = abs(width)
    if len(text) > size:
        text = text[: size - 1] + "+" if cut and size > 1 else text[:size]
    return text.ljust(size) if width < 0 else text.rjust(size)


@contextmanager
def progress_bar(label: str, length: int, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere; it wants to be told how much is done, and of how much."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, of: None  # noqa: ARG005  # nobody looks
        return
    with click.progressbar(length=length, label=label, file=sys.stderr, show_eta=length > 1) as bar:

        def advance(done: int, of: int) -> None:
            bar.length = of
            bar.update(max(0, min(done, of) - bar.pos))

        yield advance


@contextmanager
def progress(label: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[Batch], None]]:
    """Such a bar for an intake of jobs: each batch says how far it is."""
    with progress_bar(label, total or 1, quiet=quiet) as advance:
        yield lambda batch: advance(batch.done, total or 1)
