"""`tocsin classify`: what the job scripts in files and folders are, thousands at a time."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, print_json, print_table, say
from tocsin.core.errors import InputError, ScriptError
from tocsin.core.verdict import SEEN_FROM, Screening

if TYPE_CHECKING:
    from tocsin.workload.reading import Joined
    from tocsin.workload.screening import Screener

__all__ = ["classify", "rows_of"]

CHUNK = 256
"""Scripts at a time: few enough that the first answer comes at once, many enough to be fast."""
MOST_CHARACTERS = 16 * 1024**2
"""Of the scripts that are held at a time."""
WORTH_CHILDREN = 2000
"""Scripts from which on child processes are faster than one: each takes as long to start as 400 take to screen."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILES|FOLDERS")
@click.option("--jsonl", is_flag=True, help="Print one line of JSON for each script, as they come.")
@click.option(
    "--follow", is_flag=True, help="Read what the scripts call, too: files that you may read yourself."
)
@click.option("--strict", is_flag=True, help="Exit 1 when a file could not be read.")
@options.no_header
@options.parsable
@options.as_json
@click.pass_obj
def classify(
    app: App,
    files: tuple[str, ...],
    jsonl: bool,
    follow: bool,
    strict: bool,
    noheader: bool,
    parsable2: bool,
    as_json: bool,
) -> None:
    """Say what job scripts are.

    Each of FILES, and every file below FOLDERS; - is standard input. Nothing in them is run. Operations are shown
    with their probability; one counts as seen from 50 % on.
    """
    refused: list[str] = []
    told = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal told
        # standard input is this process's own
        for row in _answers(_watched(_paths(files)), app, alone="-" in files, follow=follow):
            if "error" in row:
                refused.append(row["error"])
            else:
                told += 1
            yield row

    if jsonl:
        for row in rows():
            print_json(row)
    elif as_json:
        print_json({"scripts": list(rows())})
    else:
        good = (row for row in rows() if "error" not in row)
        print_table(good, _COLUMNS, header=not noheader, parsable=parsable2)
    for sentence in refused[:5]:
        say(f"tocsin: {sentence}")
    if len(refused) > 5:
        say(f"tocsin: {count(len(refused) - 5, 'more file')} could not be read")
    if refused and (strict or not told):
        raise SystemExit(1)


def _paths(files: Iterable[str]) -> Iterator[str]:
    """Every file that the line names; a folder's by name, without following links, so that it ends."""
    for name in files:
        if name != "-" and Path(name).is_dir():
            found = False
            for folder, below, inside in os.walk(name):
                below.sort()
                for file in sorted(inside):
                    path = os.path.join(folder, file)  # noqa: PTH118  # a million of them: text is faster
                    if _is_plain(path):
                        found = True
                        yield path
            if not found:
                raise InputError(f'there is no file below the folder "{name}"')
        else:
            yield name


def _is_plain(path: str) -> bool:
    with suppress(OSError):  # it is gone since its folder was read
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def _watched(paths: Iterator[str]) -> Iterator[str]:
    """The same, counted on the terminal."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield from paths
        return
    for number, path in enumerate(paths, 1):
        if number % CHUNK == 0:
            click.echo(f"\r{number:,} scripts", nl=False, err=True)
        yield path
    click.echo("\r", nl=False, err=True)


def _answers(paths: Iterator[str], app: App, *, alone: bool, follow: bool) -> Iterator[dict[str, Any]]:
    """The rows of these files, in order; of many by child processes, which say the same."""
    from tocsin.app.children import cores, shared_out
    from tocsin.app.judge import open_screener, screener_folder

    first = list(islice(paths, WORTH_CHILDREN))
    every = chain(first, paths)
    if alone or cores() == 1 or len(first) < WORTH_CHILDREN:
        yield from rows_of(every, open_screener(app), follow=follow)
        return
    chunks = iter(lambda: list(islice(every, CHUNK)), [])
    for rows in shared_out(partial(_in_child, screener_folder(app), follow), chunks, cores()):
        yield from rows


def _in_child(folder: Path, follow: bool, paths: list[str]) -> list[dict[str, Any]]:
    return list(rows_of(paths, _loaded(folder), follow=follow))


@cache
def _loaded(folder: Path) -> "Screener":
    """Read once for a process."""
    from tocsin.workload.screening import load_screener

    return load_screener(folder)


class _Taken(NamedTuple):
    """A file as it was read; an empty text where it could not be."""

    path: str
    text: str = ""
    below: "Joined | None" = None
    error: str | None = None


def rows_of(paths: Iterable[str], screener: "Screener", *, follow: bool) -> Iterator[dict[str, Any]]:
    """One a file, in order. So many are read at a time as fit into a chunk and into memory."""
    taken: list[_Taken] = []
    room = MOST_CHARACTERS
    for path in paths:
        taken.append(one := _take(path, follow))
        room -= len(one.text)
        if len(taken) == CHUNK or room < 0:
            yield from _screened(taken, screener)
            taken, room = [], MOST_CHARACTERS
    yield from _screened(taken, screener)


def _take(path: str, follow: bool) -> _Taken:
    try:
        text = _read(path)
    except ScriptError as error:
        return _Taken(path, error=str(error))
    if follow and path != "-":
        below = _followed(path, text)
        return _Taken(path, below.text, below)
    return _Taken(path, text)


def _screened(taken: Sequence[_Taken], screener: "Screener") -> Iterator[dict[str, Any]]:
    screenings = iter(screener.screen([one.text for one in taken if one.error is None]))
    for one in taken:
        if one.error is None:
            yield _row(one.path, one.text, next(screenings), one.below)
        else:
            yield {"file": one.path, "error": one.error}


def _read(path: str) -> str:
    from tocsin.scripts.text import read

    if path != "-":
        try:
            mode = Path(path).stat().st_mode
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ScriptError(f'the script "{path}" cannot be read: {reason}') from None
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise ScriptError(f'"{path}" is no file')
    return read(path)


def _followed(path: str, text: str) -> "Joined":
    from tocsin.workload.permitted import Submitter
    from tocsin.workload.reading import called, joined

    me = Submitter(os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))
    return joined(text, called(text, folder=str(Path(path).absolute().parent), who=me))


def _row(path: str, text: str, screening: Screening, below: "Joined | None") -> dict[str, Any]:
    from tocsin.scripts.text import readable

    row: dict[str, Any] = {
        "file": readable(path),
        "operations": {name: round(p, 4) for name, p in screening.operations.items()},
        "application": screening.application,
        "domain": screening.domain,
        "language": screening.language,
        "evidence": _evidence(text, screening, below),
    }
    if screening.open:
        row["open"] = screening.open
    if below and below.below:
        row["calls"] = [
            {"file": readable(c.path), "kind": str(c.kind), "line": c.line} for _, c in below.below
        ]
    return row


def _evidence(text: str, screening: Screening, below: "Joined | None") -> list[dict[str, Any]]:
    """The lines that spoke for an operation; with the reason, where a sign of misuse gives one.

    Where a called file spoke, `line` is that of the script which leads there, and `file_line` that of the file.
    """
    from tocsin.scripts.text import readable
    from tocsin.workload.signs.look import look

    seen = {name for name, p in screening.operations.items() if p >= SEEN_FROM}
    reasons: dict[tuple[int, str | None], str] = {}
    if seen & {"cryptomining", "cyber"}:
        reasons |= {(sign.line, sign.operation): sign.why for sign in look(text)[1]}
    told = {(e.line, e.operation): None for e in screening.evidence}
    told |= {(line, name): None for line, name in reasons if name in seen}
    found = []
    for line, operation in told:
        entry: dict[str, Any] = {"line": line, "operation": operation}
        if below and (place := below.place(line)).file:
            entry |= {"line": place.line, "file": readable(place.file), "file_line": place.inside}
        if why := reasons.get((line, operation)):
            entry["why"] = why
        found.append(entry)
    return found


def _seen(row: dict[str, Any]) -> str:
    found = sorted(((p, name) for name, p in row["operations"].items() if p >= SEEN_FROM), reverse=True)
    return ", ".join(f"{name} {p:.0%}" for p, name in found) or "none"


def _lines(row: dict[str, Any]) -> str:
    """Of the script, and of called files with their names."""
    return ",".join(dict.fromkeys(_line(entry) for entry in row["evidence"][:8]))


def _line(entry: dict[str, Any]) -> str:
    if "file" not in entry:
        return str(entry["line"])
    name = Path(entry["file"]).name
    return name if entry["file_line"] is None else f"{name}:{entry['file_line']}"


def _word(key: str) -> Any:
    return lambda row: row[key] or ""


_COLUMNS = [
    Column("File", _word("file"), -44),
    Column("Operations", _seen, -22),
    Column("Application", _word("application"), -14),
    Column("Domain", _word("domain"), -18),
    Column("Language", _word("language"), -10),
    Column("Lines", _lines, -16),
]
