"""Script files as text: lossless decoding, lines, shebang and here-documents."""

import os
import re
import select
import stat
import sys
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tocsin.core.errors import ScriptError

__all__ = [
    "LARGEST",
    "decode",
    "encode",
    "here_documents",
    "interpreter",
    "read",
    "readable",
    "shortened",
    "split_lines",
]

LARGEST = 4 * 1024**2
"""slurmctld refuses scripts above 4 MiB by default (max_script_size)."""

PIPE_TIMEOUT = 10
"""Seconds to wait for the first data from a pipe."""
_BINARY = (b"\x7fELF", b"PK\x03\x04", b"\x1f\x8b", b"%PDF", b"\x89PNG", b"MZ\x90")


def read(source: Path | str | bytes) -> str:
    """The text of a script file; `-` is standard input, bytes are the content itself.

    At most LARGEST bytes are read, even from an endless pipe.
    """
    if isinstance(source, bytes):
        return decode(source)
    if str(source) == "-":
        if sys.stdin is None or sys.stdin.closed:
            raise ScriptError("standard input is closed; give the script file")
        return decode(sys.stdin.buffer.read(LARGEST + 1), name="standard input")
    path = Path(source)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
                _await_writer(file.fileno(), path)
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScriptError(f'the script "{path}" cannot be read: {reason}') from None
    return decode(content, name=f'"{path}"')


def _await_writer(pipe: int, path: Path) -> None:
    """Wait for data in a pipe, such as a shell's `<(...)`, but not forever."""
    waiting = select.poll()
    waiting.register(pipe, select.POLLIN)
    if not waiting.poll(PIPE_TIMEOUT * 1000):
        raise ScriptError(f'"{path}" is a pipe without data for {PIPE_TIMEOUT} s; give the script file')
    os.set_blocking(pipe, True)


def decode(content: bytes, *, name: str = "the input") -> str:
    """Decode UTF-8 (invalid bytes become surrogates, so that `encode` restores them) or UTF-16 with a byte-order mark."""
    if len(content) > LARGEST:
        raise ScriptError(
            f"{name} is larger than {LARGEST // 1024**2} MiB, too large for a job script; give the script itself"
        )
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            text = content.decode("utf-16")
        except UnicodeDecodeError:
            raise ScriptError(f"{name} starts like UTF-16 but is not valid; save it as UTF-8") from None
        if "\0" in text:  # UTF-32 starts the same way
            raise ScriptError(f"{name} starts like UTF-16 but contains NUL characters; save it as UTF-8")
        return text
    if b"\0" in content or content.startswith(_BINARY):
        raise ScriptError(f"{name} is a binary file, not text; give the job script, not the program")
    return content.decode("utf-8", errors="surrogateescape")


def encode(text: str) -> bytes:
    """The reverse of `decode`, except that UTF-16 becomes UTF-8."""
    return text.encode("utf-8", errors="surrogateescape")


def readable(text: str) -> str:
    """Text for display: bytes that were not UTF-8 become question marks."""
    return text if text.isascii() else text.encode("utf-8", errors="replace").decode("utf-8")


def shortened(text: str) -> str:
    """Text to quote in a message."""
    return text if len(text) <= 60 else text[:57] + "..."


def split_lines(text: str) -> list[str]:
    """Lines without newlines; carriage returns stay, so that joining restores the text."""
    return text.split("\n")


def interpreter(lines: Sequence[str]) -> str | None:
    """The program in the shebang: `bash`, `python` (also for `/usr/bin/env python3.11`)."""
    first = lines[0].removeprefix("\ufeff") if lines else ""
    if not first.startswith("#!"):
        return None
    words = first[2:258].split()  # the kernel reads 256 bytes
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    return name.rstrip("0123456789.") or name


_SHELLS = frozenset({None, "sh", "bash", "ksh", "zsh", "dash", "csh", "tcsh", "ash", "mksh"})
_HERE = re.compile(r"""(?<!<)<<(-?)[ \t]*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_][\w.-]*))""")


def here_documents(lines: Sequence[str], program: str | None) -> list[tuple[int, int]]:
    """The here-documents of a shell script as [first, last) line indices, terminators included.

    Text without a terminator is not one (`1<<N`).
    """
    if program not in _SHELLS:
        return []
    starts = [i for i, line in enumerate(lines) if "<<" in line]
    if not starts:
        return []
    ends: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        word = line.strip()
        if word and len(word) < 256:
            ends.setdefault(word, []).append(i)
    found: list[tuple[int, int]] = []
    after = 0
    for i in starts:
        if i < after or lines[i].lstrip().startswith("#"):
            continue
        body = i + 1
        for here in islice(_HERE.finditer(lines[i]), 16):
            last = _terminator(lines, ends, here[2] or here[3] or here[4], body - 1, tabs=bool(here[1]))
            if last is not None:
                found.append((body, last + 1))
                body = after = last + 1
    return found


def _terminator(
    lines: Sequence[str], ends: dict[str, list[int]], word: str, after: int, *, tabs: bool
) -> int | None:
    """The line with only this word; leading tabs are allowed for `<<-`."""
    where = ends.get(word.strip(), [])
    first = bisect_right(where, after)
    for at in range(first, min(first + 64, len(where))):  # a bound keeps this linear
        line = lines[where[at]].rstrip("\r")
        if (line.lstrip("\t") if tabs else line) == word:
            return where[at]
    return None
