"""Reads the beginning and the end of an output file with its owner's permissions, in bounded size and time."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tocsin.sources.permitted import Refused, Submitter, open_as

__all__ = ["Excerpt", "read_excerpt", "within"]

HEAD = 1 << 15
TAIL = 1 << 18
COUNTED = 1 << 26
"""Bytes: in a longer file, the lines before the tail are not counted."""
_PIECE = 1 << 20
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The head and the tail of a file; the tail of a short file is all of it."""

    path: str
    head: str
    tail: str
    tail_line: int | None
    """Number of the tail's first line, from 1 on; None if unknown."""


def read_excerpt(who: Submitter, path: str) -> Excerpt:
    """Raises Refused, with the reason, if the owner may not read the file or it is not a regular file."""
    if who.uid == 0:
        raise Refused("files of root's jobs are not read")
    with open_as(who, path) as file:
        size = os.fstat(file).st_size
        if size <= HEAD + TAIL:
            return Excerpt(path, "", _text(_read(file, 0, HEAD + TAIL)), 1)
        head = _read(file, 0, HEAD)
        tail = _read(file, size - TAIL, TAIL)
        cut = tail.find(b"\n") + 1  # the first line may be partial
        line = _lines(file, size - TAIL + cut) + 1 if size <= COUNTED else None
        return Excerpt(path, _text(head), _text(tail[cut:]), line)


def within(seconds: float, work: Callable[[], _Found]) -> _Found:
    """The result of `work`, or TimeoutError: a hanging file system must not stop the caller."""
    done: list[_Found] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # raised again below
            failed.append(error)

    thread = threading.Thread(target=run, name="read-output", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


def _read(file: int, start: int, most: int) -> bytes:
    content = bytearray()
    while len(content) < most and (piece := os.pread(file, most - len(content), start + len(content))):
        content += piece
    return bytes(content)


def _lines(file: int, end: int) -> int:
    """Line ends before this position."""
    number = at = 0
    while at < end and (piece := os.pread(file, min(_PIECE, end - at), at)):
        number += piece.count(b"\n")
        at += len(piece)
    return number


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="replace")
