"""Reads a large JSON object member by member, in the memory of one record."""

import codecs
import json
from collections.abc import Iterable, Iterator
from json import JSONDecodeError
from typing import Any, NamedTuple

from tocsin.core.errors import SourceError

__all__ = ["MAX_RECORD", "JsonObject", "Member"]

MAX_RECORD = 64 * 2**20  # characters of one record; a job with ten thousand steps has half of that
_MOST_KEYS = 20
_BLANK = frozenset(" \t\r\n")
_ENDS = _BLANK | frozenset(",]}")


class Member(NamedTuple):
    """A member of the object; items of a list come one by one, with their index."""

    key: str
    place: int | None
    value: Any


class JsonObject:
    """The members of an object from chunks of bytes; `broken` is why reading stopped early, if it did."""

    def __init__(self, chunks: Iterable[bytes], *, max_record: int = MAX_RECORD) -> None:
        self.broken: str | None = None
        self.keys: dict[str, None] = {}
        """The keys so far, at most as many as a reply of Slurm has."""
        self._chunks = iter(chunks)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._max_record = max_record
        self._text = ""
        self._at = 0
        self._over = False

    def members(self) -> Iterator[Member]:
        """All members in order. Raises if not a JSON object; sets `broken` if it ends early."""
        try:
            if self._next() != "{":
                raise SourceError("not a JSON object")
            yield from self._members()
        except _Broken as broken:
            self.broken = str(broken)

    def _members(self) -> Iterator[Member]:
        self._at += 1
        while self._next() != "}":
            key = self._value()
            if not isinstance(key, str):
                raise _Broken("invalid JSON follows")
            self._take(":")
            if len(self.keys) < _MOST_KEYS:
                self.keys[key[:40]] = None
            if self._next() == "[":
                yield from self._items(key)
            else:
                yield Member(key, None, self._value())
            if self._next() == ",":
                self._at += 1
            elif self._next() != "}":
                raise _Broken("invalid JSON follows")

    def _items(self, key: str) -> Iterator[Member]:
        self._at += 1
        place = 0
        while self._next() != "]":
            yield Member(key, place, self._value())
            place += 1
            if self._next() == ",":
                self._at += 1
            elif self._next() != "]":
                raise _Broken("invalid JSON follows")
        self._at += 1

    def _take(self, mark: str) -> None:
        if self._next() != mark:
            raise _Broken("invalid JSON follows")
        self._at += 1

    def _next(self) -> str:
        """The next non-blank character."""
        while True:
            text, at = self._text, self._at
            while at < len(text) and text[at] in _BLANK:
                at += 1
            self._at = at
            if at < len(text):
                return text[at]
            if not self._more():
                raise _Broken("the data end too early")

    def _value(self) -> Any:
        self._next()
        decoder = _DECODER
        while True:
            try:
                value, end = decoder.raw_decode(self._text, self._at)
            except JSONDecodeError:
                # Invalid or incomplete: try with more data.
                if not self._more():
                    raise _Broken("the data end too early or are invalid JSON") from None
            except ValueError:  # Python refuses numbers of more than 4,300 digits
                decoder = _PATIENT
            except RecursionError:
                raise _Broken("a record is nested too deeply") from None
            else:
                if self._text[end : end + 1] not in _ENDS and type(value) in (int, float) and self._more():
                    continue  # a number may continue
                self._at = end
                return value

    def _more(self) -> bool:
        """Read at least as much again as is unread, so that parsing long records stays linear."""
        if self._over:
            return False
        parts = [self._text[self._at :]]
        held = len(parts[0])
        if held > self._max_record:
            raise _Broken(f"a record has more than {self._max_record} characters")
        wanted = max(held, 1)
        while wanted > 0 and not self._over:
            chunk = next(self._chunks, None)
            self._over = chunk is None
            parts.append(self._decode(chunk or b"", self._over))
            wanted -= len(parts[-1])
        self._text, self._at = "".join(parts), 0
        return len(self._text) > held


class _Broken(Exception):
    """The data cannot be parsed beyond this point."""


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) < 40 else None


_DECODER = json.JSONDecoder(strict=False)
_PATIENT = json.JSONDecoder(strict=False, parse_int=_integer)
