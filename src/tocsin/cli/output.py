"""How rows are shown: columns as sacct prints them, `-P` text, or JSON."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from tocsin.core.intake import Batch

__all__ = ["Column", "count", "plain", "print_json", "print_table", "progress", "say"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a listing; a negative width aligns left, as in sacct."""

    title: str
    value: Callable[[dict[str, Any]], str]
    width: int


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
def progress(label: str, total: int | None, *, quiet: bool) -> Iterator[Callable[[Batch], None] | None]:
    """A bar on a terminal, nothing elsewhere; each stored batch says how far it is."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=total or 1, label=label, file=sys.stderr, show_eta=bool(total)) as bar:
        yield lambda batch: bar.update(max(0, min(batch.done, bar.length or 0) - bar.pos))
