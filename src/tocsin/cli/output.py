"""All output to the terminal: lines, tables as sacct prints them, `-P` text, JSON, messages and progress.

Job names and scripts are untrusted text, so control characters are escaped here, for all commands.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TextIO

import click

from tocsin.core.printable import printable

__all__ = [
    "Column",
    "Listing",
    "ProgressBar",
    "number_of",
    "print_json",
    "print_line",
    "print_message",
    "print_table",
    "text_of",
]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; a negative width aligns left, as in sacct."""

    title: str
    value: Callable[[dict[str, Any]], str]
    width: int


@dataclass(frozen=True, slots=True)
class Listing:
    """The options of a command that prints a table."""

    noheader: bool
    parsable2: bool
    as_json: bool

    def print_table(self, rows: Iterable[dict[str, Any]], columns: Sequence[Column]) -> None:
        print_table(rows, columns, header=not self.noheader, parsable=self.parsable2)


def print_line(text: str = "") -> None:
    """A line on stdout."""
    _write(sys.stdout, text)


def print_message(message: str) -> None:
    """A message for people: on stderr, never mixed with data."""
    _write(sys.stderr, message)


def _write(stream: TextIO | None, text: str) -> None:
    """Not with click, which takes an ASCII stream for a mistake and writes UTF-8 to it. A closed stream is None."""
    if stream is not None:
        stream.write(f"{printable(text)}\n")
        stream.flush()


def text_of(name: str) -> Callable[[dict[str, Any]], str]:
    """For a column: the text with that name in a row; empty if there is none."""
    return lambda row: row.get(name) or ""


def number_of(name: str, digits: int = 0) -> Callable[[dict[str, Any]], str]:
    """For a column: the number with that name in a row; empty if there is none."""
    return lambda row: "" if row[name] is None else f"{row[name]:,.{digits}f}"


def print_json(value: Any) -> None:
    """In ASCII, which every terminal and encoding can show."""
    _write(sys.stdout, json.dumps(value, allow_nan=False))


def print_table(
    rows: Iterable[dict[str, Any]], columns: Sequence[Column], *, header: bool, parsable: bool, end: str = ""
) -> None:
    """Fixed widths for people (a truncated value ends in +), pipes for programs; `end` ends each line of the latter.

    A pipe inside a value would start a new column, so it is printed as \\x7c.
    """
    write = sys.stdout.write
    if parsable:
        if header:
            write("|".join(column.title for column in columns) + end + "\n")
        for row in rows:
            write(
                "|".join(printable(column.value(row)).replace("|", r"\x7c") for column in columns)
                + end
                + "\n"
            )
        return
    if header:
        write(" ".join(_fit(c.title, c.width, cut=False) for c in columns).rstrip() + "\n")
        write(" ".join("-" * abs(c.width) for c in columns) + "\n")
    for row in rows:
        write(" ".join(_fit(printable(c.value(row)), c.width) for c in columns).rstrip() + "\n")


def _fit(text: str, width: int, *, cut: bool = True) -> str:
    size = abs(width)
    if len(text) > size:
        text = text[: size - 1] + "+" if cut and size > 1 else text[:size]
    return text.ljust(size) if width < 0 else text.rjust(size)


class ProgressBar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self) -> None:
        self._label = ""
        self._shown = ExitStack()

    def advance(self, label: str, done: int, of: int) -> None:
        if not sys.stderr.isatty():
            return
        if not of:  # the total is unknown
            if not sys.stdout.isatty():
                click.echo(f"\r{done:,} {printable(label)}", nl=False, err=True)
            return
        if label != self._label:
            self.close()
            self._label = label
            bar = click.progressbar(length=of, label=printable(label), file=sys.stderr, show_eta=of > 1)
            self._bar = self._shown.enter_context(bar)
        self._bar.length = of
        self._bar.update(max(0, min(done, of) - self._bar.pos))

    def print_message(self, message: str) -> None:
        self.close()
        print_message(message)

    def close(self) -> None:
        self._shown.close()
        self._label = ""
