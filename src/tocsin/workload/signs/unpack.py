"""Commands that a script hides in base64, hexadecimal digits, escapes, compression or broken words; never run."""

import base64
import binascii
import bz2
import codecs
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from tocsin.workload.commands import Line, changed_lines
from tocsin.workload.signs.effort import Effort

__all__ = ["Hidden", "Unpacked", "unpack"]


class Hidden(NamedTuple):
    """What was hidden in a line of the script."""

    line: int
    text: str


class Unpacked(NamedTuple):
    """Everything found, and the lines with more packed content than is examined."""

    found: list[Hidden]
    beyond: list[int]


MOST_DEPTH = 4
MOST_PIECES = 64
MOST_BYTES = 256 * 1024
"""Limit on everything unpacked from one script."""
_LEAST_LETTERS = 12
"""Random bytes are all printable by chance once in 10^5 (95/256)^12; scripts have few long words."""

# "bash -i" in base64 has 12 characters; shorter pieces are words of a language far more often than hidden text.
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}")
_BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_BASE32 = re.compile(r"(?<![A-Za-z0-9])[A-Z2-7]{24,}={0,6}")
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?(?>(?:[0-9a-fA-F]{2}){12,})")
_SPACED_HEX = re.compile(r"(?>(?:\b[0-9a-fA-F]{2} ){12,})")
_LEAST_WORD, _LEAST_HEX = 16, 24
_IN_HEX, _IN_BASE32 = (
    bytes(code if chr(code) in letters else 32 for code in range(256))
    for letters in ("0123456789abcdefABCDEF", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
)
_SEVERAL = 3
"""Times that a line must do the same to hide something: once is a slip or a habit."""
_AROUND = " \t\r#\"'\\;"
"""What may surround a line of base64."""
_ESCAPE = re.compile(r"\\(?:(?:x|u00|U000000)([0-9a-fA-F]{2})|0?([0-3][0-7]{2}))")
_QUOTED = re.compile(r"\"([^\"\n]{8,})\"|'([^'\n]{8,})'|(?<=echo )([^\s'\"|;]{8,})")
_REVERSED = re.compile(r"\|\s*rev\b|\[::-1\]")
_ROTATED = re.compile(r"\btr\b.{0,40}n-z|rot_?13", re.IGNORECASE)
_BROKEN = re.compile(r"(?<=\w)(?:''|\"\"|\$[@*]|\$\((?::|true)?\)|``)(?=\w)|\$\{?IFS\b\}?(?:\$9)?")
_QUOTED_LETTERS = re.compile(r"(?<=\w)([\"'])(\w{1,3})\1(?=\w)")
_UNSET = re.compile(r"(?<=\w)\$\{(\w{1,40})\}(?=\w)")
_JOINED = re.compile(r"(?<=[\w.:/+-])([\"'])\s{0,3}(?:\+|\.\.?)\s{0,3}b?\1(?=[\w.:/+-])")
"""Two pieces of text that a program joins."""
_SLASHED = re.compile(r"(?:^|[;&|(]\s*|\bsudo )[\w./]*(?:\\[a-zA-Z]\w{0,2}){2,}")
_SLASHED_WORD = re.compile(r"(?<![^\s;&|])(?:[\w:/+.-]*+\\[a-zA-Z]){3,}[\w:/+.\\-]*")
_BENT = re.compile(
    r"\\\S|''|\"\"|``|\$(?:\{?IFS|[@*]|\(\)|\(:|\(t|\{\w{1,40}\}\w)|'(?<=\w')\w{1,3}[\"']\w|\"(?<=\w\")\w{1,3}[\"']\w"
    r"|'(?<=[\w.:/+-]')\s{0,3}(?:\+|\.\.?)\s{0,3}b?'|\"(?<=[\w.:/+-]\")\s{0,3}(?:\+|\.\.?)\s{0,3}b?\""
)
"""A line without any of these needs no straightening. Each begins with a literal character, so that the search is fast."""
_RUN = re.compile(r"\b(?:sh|bash|eval|base64|python\d?|perl)\b")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1a\x7f]")
_MARKS = re.compile(rb"[\s;|&/$=.:-]")
_PACKED = b"\x1f\x78B\xfd"
"""First bytes of the output of gzip, zlib, bzip2 and xz."""
_PRINTABLE = bytes([*range(32, 127), *b"\n\r\t"])
_LONGEST = 64 * 1024
"""A longer line is not a command; it is not straightened."""


def unpack(text: str, effort: Effort | None = None) -> Unpacked:
    """What a script hides, within limits on depth, pieces, bytes, attempts and time."""
    effort = effort or Effort()
    found: list[Hidden] = []
    beyond: set[int] = set()
    unpacked: set[str] = set()
    room = MOST_BYTES
    level: list[Line] = [(0, text)]
    for _ in range(MOST_DEPTH):
        deeper: list[Line] = []
        for origin, layer in level:
            for number, content in _pieces(layer, room, effort):
                if content in unpacked:
                    continue
                line = origin or number
                if not content or len(found) >= MOST_PIECES or room <= 0:
                    beyond.add(line)
                    break
                unpacked.add(content)
                found.append(Hidden(line, content[:room]))
                deeper.append((line, content[:room]))
                room -= len(content)
                if room <= 0:
                    beyond.add(line)
        level = deeper
    for line, layer in level:
        if any(content not in unpacked for _, content in _pieces(layer, room, effort)):
            beyond.add(line)
    return Unpacked(found, sorted(beyond))


def _pieces(text: str, room: int, effort: Effort) -> Iterator[Line]:
    """The texts that one layer hides, with their lines; an empty one if more may be hidden than is tried."""
    lines: Sequence[Line] = list(enumerate(text.split("\n"), 1))
    # A piece may be put together from variables: such lines are examined as the shell would expand them.
    filled = changed_lines(text) if "$" in text else ()
    filled_text = "\n".join(line for _, line in filled)
    long = _long_words(text)
    new = [word for word in _long_words(filled_text) if word not in long] if filled else []
    for numbered, whole, pieces in (
        (lines, text, chain(_blocks(lines), _words(text, long), _turned(text, lines))),
        (filled, filled_text, _words(filled_text, new)),
    ):
        for written, content in pieces:
            plain = _text_of(content, room) if (tried := effort.may_try()) else ""
            if plain is not None:
                yield numbered[whole.count("\n", 0, max(whole.find(written), 0))][0], plain
            if not tried:
                return
    yield from _straightened(text, lines)


def _blocks(lines: Sequence[Line]) -> Iterator[tuple[str, bytes]]:
    """Runs of lines that are entirely base64, joined: a here-document, or comments that the script reads itself."""
    pieces: list[str] = []
    for _, line in [*lines, (0, "")]:
        if pieces or len(line) >= _LEAST_WORD:
            word = line.strip(_AROUND)
            if " " not in word and _BASE64_LINE.fullmatch(word) and (pieces or len(word) >= _LEAST_WORD):
                pieces.append(word)
                continue
        if len(pieces) > 1:
            for content in _decoded64("".join(pieces)):
                yield pieces[0], content
        pieces = []


def _words(text: str, long: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The words of a text, with the bytes that they may encode."""
    # Splitting first is ten times as fast as searching the whole text for the shapes.
    # Text in base64 has capitals, paths seldom do.
    capital = "\n".join(word for word in long if not word.islower())
    for found in _BASE64.findall(capital):
        for content in _decoded64(found):
            yield found, content
    for found in _BASE32.findall(capital) if _has_run(capital, _IN_BASE32) else ():
        stripped = found.rstrip("=")
        with suppress(binascii.Error):
            yield found, base64.b32decode(stripped + "=" * (-len(stripped) % 8))
    together = "\n".join(long)
    for found in _HEX.findall(together) if _has_run(together, _IN_HEX) else ():
        yield found, bytes.fromhex(found.removeprefix("0x"))
    for found in _SPACED_HEX.findall(text) if "xxd" in text or "hex" in text else ():
        yield found, bytes.fromhex(found)


def _has_run(text: str, table: bytes) -> bool:
    """Whether as many consecutive letters of an alphabet occur as in a piece; the patterns take three times as long."""
    runs = text.encode("utf-8", "surrogatepass").translate(table).split()
    return max(map(len, runs), default=0) >= _LEAST_HEX


def _long_words(text: str) -> dict[str, None]:
    """The long words of a text, in order and without repeats."""
    return dict.fromkeys([word for word in text.split() if len(word) >= _LEAST_WORD])


def _turned(text: str, lines: Sequence[Line]) -> Iterator[tuple[str, bytes]]:
    """Quoted words of lines that are written backwards, or in ROT13."""
    if not any(sign in text for sign in ("rev", "[::-1]", "N-Z", "n-z", "rot13", "rot_13")):
        return
    low = text.lower()
    may_rotate = "n-z" in low or "rot13" in low or "rot_13" in low
    if not (_REVERSED.search(text) or (may_rotate and _ROTATED.search(text))):
        return
    for _, line in lines:
        backwards, rotated = _REVERSED.search(line), _ROTATED.search(line)
        if not (backwards or rotated) or not _RUN.search(line):
            continue
        for parts in _QUOTED.findall(line):
            quoted = next(part for part in parts if part)
            plain = quoted[::-1] if backwards else codecs.decode(quoted, "rot13")
            yield quoted, plain.encode("utf-8", errors="surrogateescape")
            if backwards:
                yield from ((quoted, content) for content in _decoded64(plain))


def _decoded64(word: str) -> Iterator[bytes]:
    stripped = word.rstrip("=").replace("-", "+").replace("_", "/")
    whole = stripped[: len(stripped) - (len(stripped) % 4 == 1)]
    try:
        yield binascii.a2b_base64(whole + "=" * (-len(whole) % 4))
    except (binascii.Error, ValueError):
        return


def _text_of(content: bytes, room: int) -> str | None:
    """The bytes as text, decompressed if compressed; None if they are not text."""
    content = _inflated(content, room)
    if len(content) < _LEAST_LETTERS or content.startswith(b"\x7fELF"):
        return None
    if not content[1] and not any(content[1:64:2]):  # PowerShell's -enc is UTF-16
        content = content[: len(content) // 2 * 2 : 2]
    head = content[:4096]
    # Text has blanks or punctuation; a long name, an identifier or a key in base64 does not.
    if not _MARKS.search(head) or (
        len(head.translate(None, _PRINTABLE)) * 20 > len(head) and not _is_foreign(head)
    ):
        return None
    return content[:room].decode("utf-8", errors="replace")


def _is_foreign(head: bytes) -> bool:
    """Whether bytes are text in a non-Latin script; a letter may be cut at the end."""
    if _CONTROL.search(head):
        return False
    try:
        codecs.utf_8_decode(head, "strict", False)
    except UnicodeDecodeError:
        return False
    return True


def _inflated(content: bytes, room: int) -> bytes:
    """The content of a compressed piece, up to the limit."""
    if content[:1] not in _PACKED:
        return content
    room = max(room, 1)  # 0 would mean no limit
    try:
        if content.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(content, room)
        if content[:1] == b"\x78" and content[1:2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
            return zlib.decompressobj().decompress(content, room)
        if content.startswith(b"BZh"):
            return bz2.BZ2Decompressor().decompress(content, room)
        if content.startswith(b"\xfd7zXZ\0"):
            return lzma.LZMADecompressor(memlimit=64 * 1024**2).decompress(content, room)
    except (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError):
        return b""
    return content


def _straightened(text: str, lines: Sequence[Line]) -> Iterator[Line]:
    r"""Lines with their escapes written out, or with broken words joined: `\x78mrig`, `x''mrig`, `curl${IFS}-s`."""
    for number, line in _bent(text, lines):
        if len(line) > _LONGEST:
            continue
        letters = sum(_character(found).isalnum() for found in _ESCAPE.finditer(line)) if "\\" in line else 0
        plain = _ESCAPE.sub(_character, line) if letters >= _SEVERAL else line
        if "\\" in plain:
            plain = _SLASHED.sub(lambda found: found[0].replace("\\", ""), plain)
            if "'" not in plain and '"' not in plain:
                plain = _SLASHED_WORD.sub(lambda found: found[0].replace("\\", ""), plain)
        plain = _BROKEN.sub(lambda found: " " if "IFS" in found[0] else "", plain)
        plain = _JOINED.sub("", plain) if "+" in plain or "." in plain else plain
        quotes = plain.count("'") + plain.count('"')
        if quotes >= 2 * _SEVERAL and len(_QUOTED_LETTERS.findall(plain)) >= _SEVERAL:
            plain = _QUOTED_LETTERS.sub(r"\2", plain)
        if plain.count("${") >= _SEVERAL:
            unset = Counter(_UNSET.findall(plain))
            for name in [one for one, count in unset.items() if count >= _SEVERAL and f"{one}=" not in text]:
                plain = plain.replace(f"${{{name}}}", "")
        if plain != line:
            yield number, plain


def _bent(text: str, lines: Sequence[Line]) -> Iterator[Line]:
    """The lines that may need straightening."""
    place = begins = 0
    while found := _BENT.search(text, begins):
        place += text.count("\n", begins, found.start())
        yield lines[place]
        begins = text.find("\n", found.end()) + 1
        place += 1
        if not begins:
            return


def _character(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16) if found[1] else int(found[2], 8))
    return letter if letter.isascii() and letter.isprintable() else found[0]
