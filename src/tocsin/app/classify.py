"""`classify`: classify the job scripts in files and folders, thousands at a time."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tocsin.app.app import App
from tocsin.app.judge import open_screener, screener_folder
from tocsin.core.errors import InputError, ScriptError
from tocsin.core.verdict import SEEN_FROM, Screening

if TYPE_CHECKING:
    from tocsin.workload.screening import Screener
    from tocsin.workload.script_calls import Joined

__all__ = ["classify", "rows_of"]

CHUNK = 256
"""Scripts at a time: few enough for a quick first answer, many enough to be fast."""
MOST_CHARACTERS = 16 * 1024**2
"""Limit on the scripts held in memory at a time."""
WORTH_CHILDREN = 2000
"""From this many scripts on, child processes pay off: starting one takes as long as classifying 400 scripts."""


def classify(app: App, files: Sequence[str], *, follow: bool = False) -> Iterator[dict[str, Any]]:
    """One row for each of the files and each file below the folders, in order; large sets are shared among processes.

    A file that cannot be read is a row with an `error`.
    """
    from tocsin.app import children

    paths = _counted(app, _paths(files))
    first = list(islice(paths, WORTH_CHILDREN))
    every = chain(first, paths)
    if (
        "-" in files or children.cores() == 1 or len(first) < WORTH_CHILDREN
    ):  # children cannot read standard input
        yield from rows_of(every, open_screener(app), follow=follow)
        return
    chunks = iter(lambda: list(islice(every, CHUNK)), [])
    for rows in children.map_in_children(
        partial(_in_child, screener_folder(app), follow), chunks, children.cores()
    ):
        yield from rows


def _paths(files: Iterable[str]) -> Iterator[str]:
    """Each file, and the files below each folder in the order of their names; links are not followed."""
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
                raise InputError(f'the folder "{name}" contains no files')
        else:
            yield name


def _is_plain(path: str) -> bool:
    with suppress(OSError):  # removed since its folder was read
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def _counted(app: App, paths: Iterator[str]) -> Iterator[str]:
    for number, path in enumerate(paths, 1):
        if number % CHUNK == 0:
            app.progress("scripts", number, 0)
        yield path


def _in_child(folder: Path, follow: bool, paths: list[str]) -> list[dict[str, Any]]:
    return list(rows_of(paths, _loaded(folder), follow=follow))


@cache
def _loaded(folder: Path) -> "Screener":
    """Loaded once per process."""
    from tocsin.workload.screening import load_screener

    return load_screener(folder)


class _ScriptText(NamedTuple):
    """A file's content; an empty text if it could not be read."""

    path: str
    text: str = ""
    below: "Joined | None" = None
    error: str | None = None


def rows_of(paths: Iterable[str], screener: "Screener", *, follow: bool) -> Iterator[dict[str, Any]]:
    """One row for each file, in order; read in chunks that fit into memory."""
    scripts: list[_ScriptText] = []
    room = MOST_CHARACTERS
    for path in paths:
        scripts.append(one := _read_script(path, follow))
        room -= len(one.text)
        if len(scripts) == CHUNK or room < 0:
            yield from _screened(scripts, screener)
            scripts, room = [], MOST_CHARACTERS
    yield from _screened(scripts, screener)


def _read_script(path: str, follow: bool) -> _ScriptText:
    try:
        text = _read(path)
    except ScriptError as error:
        return _ScriptText(path, error=str(error))
    if follow and path != "-":
        below = _followed(path, text)
        return _ScriptText(path, below.text, below)
    return _ScriptText(path, text)


def _screened(scripts: Sequence[_ScriptText], screener: "Screener") -> Iterator[dict[str, Any]]:
    screenings = iter(screener.screen([one.text for one in scripts if one.error is None]))
    for one in scripts:
        if one.error is None:
            yield _row(one.path, one.text, next(screenings), one.below)
        else:
            yield {"file": one.path, "error": one.error}


def _read(path: str) -> str:
    from tocsin.scripts.text import read

    if path != "-":
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116  # a million of them: text is faster
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ScriptError(f'the script "{path}" cannot be read: {reason}') from None
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            raise ScriptError(f'"{path}" is not a file')
    return read(path)


def _followed(path: str, text: str) -> "Joined":
    from tocsin.sources.permitted import Submitter
    from tocsin.workload.script_calls import called, joined

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
    if screening.own_programs:
        row["own_programs"] = screening.own_programs
    if screening.open:
        row["open"] = screening.open
    if below and below.below:
        row["calls"] = [
            {"file": readable(c.path), "kind": str(c.kind), "line": c.line} for _, c in below.below
        ]
    return row


def _evidence(text: str, screening: Screening, below: "Joined | None") -> list[dict[str, Any]]:
    """The lines that indicate an operation, with the reason if a sign of misuse gives one.

    For a line in a called file, `line` is the line of the script that leads there, `file_line` the line of the file.
    """
    from tocsin.scripts.text import readable
    from tocsin.workload.signs.look import look

    seen = {name for name, p in screening.operations.items() if p >= SEEN_FROM}
    reasons: dict[tuple[int, str | None], str] = {}
    if seen & {"cryptomining", "cyber"}:
        reasons |= {(sign.line, sign.operation): sign.why for sign in look(text)[1]}
    places = {(e.line, e.operation): None for e in screening.evidence}
    places |= {(line, name): None for line, name in reasons if name in seen}
    found = []
    for line, operation in places:
        entry: dict[str, Any] = {"line": line, "operation": operation}
        if below and (place := below.place(line)).file:
            entry |= {"line": place.line, "file": readable(place.file), "file_line": place.inside}
        if why := reasons.get((line, operation)):
            entry["why"] = why
        found.append(entry)
    return found
