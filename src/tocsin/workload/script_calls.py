"""What a script calls: files that it sources, runs or passes to Python, and the names of containers. Nothing is run."""

import ast
import os
import os.path
import pwd
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tocsin.core.errors import ScriptError
from tocsin.scripts.text import decode
from tocsin.sources.permitted import Refused, Submitter, read_as
from tocsin.workload.commands import command_lines

__all__ = ["Bounds", "Called", "Joined", "Kind", "Place", "called", "joined"]


class Kind(StrEnum):
    SOURCED = "sourced"
    SCRIPT = "script"
    PYTHON = "python"
    CONTAINER = "container"


class Called(NamedTuple):
    """Something that a script calls, the line of the call, and its content: text, imports, or a name."""

    path: str
    kind: Kind
    line: int
    text: str
    numbers: Sequence[int] | None = None
    """Line numbers in the file for the lines of `text`, if the text is not the file itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is read for one script."""

    files: int = 32
    each: int = 256 * 1024
    whole: int = 1024**2
    depth: int = 3
    seconds: float = 2.0


_BOUNDS = Bounds()
_SOURCED = re.compile(r"(?:^|[;&|(]\s{0,9})(?:source|\.)\s+[\"']?([^\s;&|<>()`'\"]{1,4096})")
_WORD = re.compile(r"[^\s;&|<>()`'\"=,]{1,4096}")
_MODULE = re.compile(r"\bpython[\d.]{0,6}\s+(?:-[uOBsE]{1,4}\s+){0,4}-m\s+([A-Za-z_][\w.]{0,200})")
_IMAGE = re.compile(
    r"\b(?:docker|oras|library|shub)://([\w./:@-]{1,200})|([\w./~-]{1,200}\.(?:sif|simg))\b"
    r"|--(?:container-)?image[ =]([\w./:@+-]{1,200})"
    r"|\b(?:docker|podman)\s+run\s+(?:-{1,2}[\w-]{1,40}(?:=\S{1,200})?\s+){0,20}([\w./-]{1,200}(?::[\w.-]{1,100})?)"
)
_PLACE = re.compile(
    r"(?<![^\s=:\"'])~(?=/)|\$(?:(HOME|PWD|SLURM_SUBMIT_DIR)(?!\w)|\{(HOME|PWD|SLURM_SUBMIT_DIR)\})"
)
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_][\w.]{0,200})", re.MULTILINE)


def called(
    text: str,
    *,
    folder: str,
    who: Submitter,
    bounds: Bounds = _BOUNDS,
    clock: Callable[[], float] = time.monotonic,
) -> list[Called]:
    """What a script calls, and what is called from there; relative paths start at `folder`, where the job runs.

    Files that cannot be read, that the submitter may not read, or that exceed the bounds are left out.
    """
    ends = clock() + bounds.seconds
    places = {"HOME": _home(who), "PWD": folder, "SLURM_SUBMIT_DIR": folder}
    found: list[Called] = []
    visited: set[str] = set()
    room = bounds.whole
    waiting = deque([(0, 0, text)])
    while waiting:
        depth, origin, content = waiting.popleft()
        for line, kind, name in _named(content, places):
            if len(visited) >= bounds.files or room <= 0 or clock() > ends:
                return found
            line = origin or line
            path = name if kind is Kind.CONTAINER else os.path.normpath(os.path.join(folder, name))  # noqa: PTH118  # text in, text out
            if path in visited:
                continue
            visited.add(path)
            if kind is Kind.CONTAINER:
                found.append(Called(path, kind, line, name, ()))
                continue
            try:
                file_text = decode(read_as(who, path, min(bounds.each, room)))
            except (Refused, ScriptError):
                continue
            room -= len(file_text)
            if kind is Kind.PYTHON:
                imports = _imports(file_text)
                statements = "\n".join(f"import {name}" for name in imports)
                found.append(Called(path, kind, line, statements, tuple(imports.values())))
            else:
                found.append(Called(path, kind, line, file_text))
                if depth + 1 < bounds.depth:
                    waiting.append((depth + 1, line, file_text))
    return found


def _home(who: Submitter) -> str | None:
    """The submitter's home folder, which a shell would use for ~."""
    if who.uid == os.geteuid() and os.environ.get("HOME", "").startswith("/"):
        return os.environ["HOME"]
    with suppress(KeyError):
        return pwd.getpwuid(who.uid).pw_dir
    return None


def _named(text: str, places: Mapping[str, str | None]) -> Iterator[tuple[int, Kind, str]]:
    """What the lines of a script name, in order; words with anything unknown in them are left out.

    `places`: the folders that variables of the job refer to.
    """

    def place(found: re.Match[str]) -> str:
        return places["HOME" if found[0] == "~" else found[1] or found[2]] or found[0]

    for number, line in command_lines(text):
        if "$" in line or "~" in line:
            line = _PLACE.sub(place, line)
        for name in _SOURCED.findall(line):
            if _known(name):
                yield number, Kind.SOURCED, name
        for module in _MODULE.findall(line):
            yield number, Kind.PYTHON, module.replace(".", "/") + ".py"
        for word in _WORD.findall(line):
            kind = _kind_of(word)
            if kind and _known(word):
                yield number, kind, word
        for names in _IMAGE.findall(line):
            yield number, Kind.CONTAINER, next(name for name in names if name)


def _kind_of(word: str) -> Kind | None:
    if word.endswith(".py"):
        return Kind.PYTHON
    return Kind.SCRIPT if word.endswith((".sh", ".bash", ".zsh", ".csh", ".ksh")) else None


def _known(word: str) -> bool:
    return not any(letter in word for letter in "$*?[{~\\") and "://" not in word


def _imports(source: str) -> dict[str, int]:
    """The modules that a Python file imports, each with its first line; by pattern if it is not valid Python."""
    found: list[tuple[str, int]] = []
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        line, reached = 1, 0
        for match in _IMPORT.finditer(source):
            line += source.count("\n", reached, match.start(1))
            reached = match.start(1)
            found.append((match[1], line))
    else:
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found += [(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.append((node.module, node.lineno))
    first = dict(sorted(found, reverse=True))
    return dict(sorted(first.items()))


class Place(NamedTuple):
    """Where a line of the joined text comes from: the line of the script that leads there, and the file and line."""

    line: int
    file: str | None = None
    inside: int | None = None
    """None for a name, which has no lines."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A script followed by what it calls, as one text to screen."""

    text: str
    lines: int
    """Lines of the script itself."""
    below: Sequence[tuple[int, Called]]
    """The line at which each called text begins."""

    def place(self, line: int) -> Place:
        """Where a line of the joined text is from."""
        if line <= self.lines:
            return Place(line)
        first, file = max((entry for entry in self.below if entry[0] <= line), key=lambda entry: entry[0])
        inside = line - first
        if file.numbers is None:
            return Place(file.line, file.path, inside + 1)
        return Place(file.line, file.path, file.numbers[inside] if inside < len(file.numbers) else None)


def joined(text: str, files: Sequence[Called]) -> Joined:
    """The script and what it calls, one after the other."""
    lines = text.split("\n")
    count = len(lines)
    below = []
    for file in files:
        below.append((len(lines) + 1, file))
        lines += file.text.split("\n")
    return Joined("\n".join(lines), count, below)
