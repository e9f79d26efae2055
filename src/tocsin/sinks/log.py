"""The log: one line of JSON per message, in rotated files that only their owner may read."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tocsin.core.errors import SinkError, StoreError
from tocsin.core.ports import Message, Receipt
from tocsin.sinks.body import message_id, payload
from tocsin.store.home import open_private

__all__ = ["BATCH", "Log"]

BATCH = 1000
"""Messages that a killed process may have written without acknowledging them."""
_BLOCK = 1024**2


class Log:
    """Writes each message once, by its id: messages in the last lines are not written again."""

    batch = BATCH

    def __init__(self, path: Path, *, largest: int, files: int, name: str = "log") -> None:
        """Rotate when the file would exceed `largest` bytes, and keep `files` old ones."""
        self.name = name
        self._path, self._largest, self._files = path, largest, files
        self._left: object = None
        """The state of the file after our last write."""
        self._written: set[str] = set()
        try:
            os.close(self._open())
        except OSError as error:
            raise StoreError(
                f"the log {path} cannot be opened ({error.strerror}); change sinks.{name}.file in the settings"
            ) from None

    def due(self, now: float) -> bool:  # noqa: ARG002  # at any time
        return True

    def close(self) -> None:
        """Nothing stays open."""

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        self._append(messages)
        yield Receipt(messages)

    def _append(self, messages: Sequence[Message]) -> None:
        try:
            if self._left != self._state():  # the first time, or another process wrote to it
                self._cut_partial_line()
                self._written = {_id(line) for line in self._last_lines()}
            for message in messages:
                if message_id(message) not in self._written:
                    self._write(payload(message))
                    self._written.add(message_id(message))
            self._written = {message_id(message) for message in messages}
            self._left = self._state()
        except OSError as error:
            self._left = None
            raise SinkError(f"the log {self._path} cannot be written: {error}") from None

    def _write(self, text: str) -> None:
        line = text.encode() + b"\n"
        if self._largest and (size := self._path.stat().st_size) and size + len(line) > self._largest:
            self._rotate()
        file = self._open()
        try:
            while line:
                line = line[os.write(file, line) :]
        finally:
            os.close(file)

    def _rotate(self) -> None:
        if not self._files:
            self._path.unlink()
            return
        for number in range(self._files - 1, 0, -1):
            if (old := self._old(number)).exists():
                old.replace(self._old(number + 1))
        self._path.replace(self._old(1))

    def _old(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _open(self) -> int:
        return open_private(self._path, os.O_WRONLY | os.O_APPEND, 0o600)

    def _state(self) -> object:
        file = self._open()  # it may have been removed
        try:
            found = os.fstat(file)
            return found.st_ino, found.st_size
        finally:
            os.close(file)

    def _cut_partial_line(self) -> None:
        """Remove the partial line of a killed process."""
        with self._path.open("r+b") as file:
            content = _tail(self._path, 1)
            if content and not content.endswith(b"\n"):
                whole = file.seek(0, os.SEEK_END) - (len(content) - (content.rfind(b"\n") + 1))
                file.truncate(whole)

    def _last_lines(self) -> Iterator[bytes]:
        """The last lines, as many as may have been sent without being acknowledged."""
        left = BATCH
        for path in (self._path, *(self._old(number) for number in range(1, self._files + 1))):
            if left > 0 and path.exists():
                lines = [line for line in _tail(path, left).split(b"\n") if line][-left:]
                left -= len(lines)
                yield from lines


def _id(line: bytes) -> str:
    try:
        return str(json.loads(line)["id"])
    except (ValueError, KeyError, TypeError):  # not written by us
        return ""


def _tail(path: Path, lines: int) -> bytes:
    """At least the last `lines` lines of a file, starting at the beginning of a line."""
    with path.open("rb") as file:
        place = file.seek(0, os.SEEK_END)
        content = b""
        while place > 0 and content.count(b"\n") <= lines:
            step = min(place, _BLOCK)
            place -= step
            file.seek(place)
            content = file.read(step) + content
    return content if place == 0 else content[content.find(b"\n") + 1 :]
