"""Reads text files and pipes, plain or gzip, as blocks of whole lines in bounded memory."""

import hashlib
import json
import os
import re
import stat
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tocsin.core.errors import SourceError
from tocsin.core.ids import CLUSTER, LONGEST_CLUSTER
from tocsin.core.printable import without_surrogates

__all__ = [
    "BLOCK",
    "MAX_LINE",
    "Block",
    "LineFile",
    "Lines",
    "Pipe",
    "check_text",
    "is_regular",
    "line_ends",
    "open_file",
    "stem",
]

BLOCK = 8 * 2**20
MAX_LINE = 2**20
_CHUNK = 2**18
_EDGE = 2**20  # bytes at each end of a file that identify it
_PACKED = {
    b"BZh": ("bzip2", "bzcat"),
    b"\xfd7zXZ": ("xz", "xzcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"PK\x03\x04": ("zip", "unzip -p"),
}
_UTF16 = re.compile(rb"\xff\xfe|\xfe\xff|[^\0]\0[^\0]\0|\0[^\0]\0[^\0]")
"""A byte order mark, or text in which every second byte is zero."""
_TAR = slice(257, 262)

TOO_LONG = "line longer than 1 MiB"
CUT_OFF = "the file ends in the middle of gzip data"
DAMAGED = "the gzip data are damaged"


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, each ended by a newline. A line that is too long is replaced by an empty one."""

    data: bytes
    first: int
    """Number of its first line, from 1."""
    done: int
    """Bytes of the file on disk read so far."""
    lost: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of lines that could not be read, by reason."""


class Lines:
    """Lines from chunks of bytes; damage is noted in `notes`."""

    def __init__(
        self,
        name: str,
        chunks: Callable[[], Iterator[bytes]],
        *,
        notes: list[str],
        max_line: int = MAX_LINE,
        block: int = BLOCK,
    ) -> None:
        self.name = name
        self.notes = notes
        self.max_line = max_line
        self.block = block
        self._source = chunks
        self._read = 0
        self._broken: str | None = None

    def blocks(self) -> Iterator[Block]:
        """All lines in order. Damage is noted, not raised; the line affected is rejected."""
        self._read, self._broken = 0, None
        buffer = bytearray()
        first, skipping, any_line = 1, False, False
        lost: dict[str, list[int]] = {}
        for chunk in self._chunks():
            if skipping:
                newline = chunk.find(b"\n")
                if newline < 0:
                    continue
                chunk, skipping = chunk[newline:], False  # keep the newline, so that line numbers stay right
            buffer += chunk
            tail = buffer.rfind(b"\n") + 1
            if len(buffer) - tail > self.max_line:
                lost.setdefault(self._too_long, []).append(first + buffer.count(b"\n"))
                del buffer[tail:]
                skipping = True
            if len(buffer) >= self.block and tail:
                data = self._without_long(bytes(buffer[:tail]), first, lost)
                del buffer[:tail]
                yield Block(data, first, self._read, lost)
                first, lost, any_line = first + data.count(b"\n"), {}, True
        tail = buffer.rfind(b"\n") + 1
        if self._broken:
            lost.setdefault(self._broken, []).append(first + buffer.count(b"\n"))
            self.notes.append(f"{self._broken}: {self.name} was read up to there")
            del buffer[tail:]
        elif tail < len(buffer):
            buffer += b"\n"
        if buffer or lost:
            data = self._without_long(bytes(buffer), first, lost)
            yield Block(data, first, self._read, lost)
        elif not any_line:
            self.notes.append(f"{self.name} is empty")

    @property
    def _too_long(self) -> str:
        return TOO_LONG if self.max_line == MAX_LINE else f"line longer than {self.max_line} bytes"

    def _without_long(self, data: bytes, first: int, lost: dict[str, list[int]]) -> bytes:
        """Replace lines that are too long by empty ones, and add them to `lost`."""
        if len(data) <= self.max_line:
            return data
        ends = line_ends(data)
        starts = np.concatenate(([0], ends[:-1] + 1))
        long = np.flatnonzero(ends - starts > self.max_line)
        if not len(long):
            return data
        lost.setdefault(self._too_long, []).extend((first + long).tolist())
        kept, place = bytearray(), 0
        for line in long.tolist():
            kept += data[place : starts[line]]
            place = int(ends[line])
        return bytes(kept + data[place:])

    def _chunks(self) -> Iterator[bytes]:
        raw = self._counted()
        head = next(raw, b"")
        body = self._inflate(head, raw) if head.startswith(b"\x1f\x8b") else chain([head], raw)
        first = next(body, b"")
        check_text(first, self.name)
        yield first.removeprefix(b"\xef\xbb\xbf")
        yield from body

    def _counted(self) -> Iterator[bytes]:
        for chunk in self._source():
            self._read += len(chunk)
            yield chunk

    def _inflate(self, head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        """Unpack in bounded pieces; the `gzip` module would lose data read before an error."""
        inflate = zlib.decompressobj(wbits=31)
        for chunk in chain([head], rest):
            while chunk:
                if inflate.eof:
                    chunk = chunk.lstrip(b"\0")  # tapes pad with zeros
                    if not chunk:
                        break
                    inflate = zlib.decompressobj(wbits=31)
                try:
                    data = inflate.decompress(chunk, _CHUNK)
                    while data:
                        yield data
                        data = inflate.decompress(inflate.unconsumed_tail, _CHUNK) if not inflate.eof else b""
                except zlib.error:
                    self._broken = DAMAGED
                    return
                chunk = inflate.unused_data if inflate.eof else b""
        if not inflate.eof:
            self._broken = CUT_OFF


class Pipe:
    """A pipe, a FIFO or standard input: opened once, because it cannot be read twice."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = open_file(path)
        self._ahead = b""

    def __str__(self) -> str:
        return self.path

    def ahead(self, size: int) -> bytes:
        """Peek at up to `size` first bytes."""
        try:
            while len(self._ahead) < size and (more := self._file.read(size - len(self._ahead))):
                self._ahead += more
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.path} cannot be read: {error}") from None
        return self._ahead

    def chunks(self) -> Iterator[bytes]:
        try:
            if self._ahead:
                yield self._ahead
            while chunk := self._file.read(_CHUNK):
                yield chunk
        finally:
            if self._file is not sys.stdin.buffer:
                self._file.close()


def check_text(head: bytes, name: str) -> None:
    """Raise if a file looks packed, or like text in another encoding."""
    if head.startswith(b"PK\x03\x04") and (b"[Content_Types].xml" in head or b"xl/" in head):
        raise SourceError(f"{name} is an Excel workbook; save its sheet of jobs as CSV")
    for magic, (packer, command) in _PACKED.items():
        if head.startswith(magic):
            raise SourceError(
                f"{name} is packed with {packer}; unpack it, such as with {command}, or pack it with gzip"
            )
    if head[_TAR] == b"ustar":
        raise SourceError(f"{name} is a tar archive; unpack it, and name the files in it")
    if _UTF16.match(head):
        raise SourceError(f"{name} is UTF-16 text; convert it with iconv -f UTF-16 -t UTF-8")


def open_file(path: str | Path) -> BinaryIO:
    """Open a file, or standard input for `-`."""
    if str(path) == "-":
        if sys.stdin is None:
            raise SourceError("there is no standard input to read from; name a file")
        return sys.stdin.buffer
    try:
        return Path(path).open("rb", buffering=0)
    except FileNotFoundError:
        raise SourceError(f"there is no file {path}; check the path") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path} cannot be read: {reason}") from None


class LineFile(Lines):
    """A file, standard input for `-`, or an open pipe."""

    def __init__(
        self,
        path: str | Path | Pipe,
        *,
        notes: list[str],
        max_line: int = MAX_LINE,
        block: int = BLOCK,
    ) -> None:
        super().__init__(str(path), self._raw, notes=notes, max_line=max_line, block=block)
        self.path = str(path)
        self.total: int | None = None
        self._pipe = path if isinstance(path, Pipe) else None
        self.regular = self._pipe is None and is_regular(self.path)
        if self.regular:
            with open_file(self.path) as file:
                self.total = os.fstat(file.fileno()).st_size

    def identity(self, kind: str, **options: Any) -> str:
        """Identifies content and options, independent of the name; unique for a pipe."""
        if not self.regular:
            return f"{kind}:{uuid.uuid4().hex}"
        digest = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
        with open_file(self.path) as file:
            digest.update(file.read(_EDGE) or b"")
            file.seek(max(0, (self.total or 0) - _EDGE))
            digest.update(file.read(_EDGE) or b"")
        return f"{kind}:{self.total}:{digest.hexdigest()[:32]}"

    def _raw(self) -> Iterator[bytes]:
        pipe = self._pipe or Pipe(self.path)
        try:
            yield from pipe.chunks()
        except (OSError, ValueError) as error:
            raise SourceError(f"{self.path} cannot be read: {error}") from None


def is_regular(path: str | Path) -> bool:
    """Whether it is a file that can be read twice; does not open pipes."""
    if str(path) == "-":
        return False
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        mode = stat.S_IFDIR
    if stat.S_ISDIR(mode):
        open_file(path).close()  # raises the reason
    return stat.S_ISREG(mode)


def line_ends(data: bytes) -> npt.NDArray[np.int64]:
    """Positions of the newlines."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == 10)


def stem(path: str | Path | Pipe) -> str | None:
    """The file's name without suffixes, as a cluster name; None for a pipe, and if no such name is left."""
    name = Path(str(path)).name.removesuffix(".gz")
    for suffix in (".swf", ".csv", ".tsv", ".parquet", ".txt", ".log"):
        name = name.removesuffix(suffix)
    word = "-".join(without_surrogates(name).replace(":", " ").split()).lstrip(".")[:LONGEST_CLUSTER]
    return word if word != "-" and re.fullmatch(CLUSTER, word) else None
