"""The allow-list in force, from the store and from a file that is reread when it changes."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, tzinfo
from pathlib import Path

from tocsin.core.allow_list import AllowEntry, SubjectKind
from tocsin.core.errors import SettingsError
from tocsin.judge.allow import DEFAULTS, AllowList
from tocsin.judge.allow_file import parse

__all__ = ["LARGEST", "AllowListReader", "read"]

LARGEST = 1024**2
"""Bytes."""
_BUILT_IN = "no earlier valid version is known, so the built-in rules and the entries of `tocsin allow` apply"


class AllowListReader:
    """Reads the allow-list from the store and from a file.

    A broken file is refused, and its last valid version stays in force.
    """

    def __init__(
        self,
        stored: Callable[[], Sequence[AllowEntry]],
        file: Path | None = None,
        *,
        kept: Path | None = None,
        zone: tzinfo = UTC,
        operations: Callable[[], Mapping[str, int | None]] = lambda: dict.fromkeys(DEFAULTS),
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.stored = stored
        self.file = file
        self.kept = kept
        """A copy of the last valid file, for the next process."""
        self.zone = zone
        self.operations = operations
        """The operations that a file may name, and since when each is known (None: always)."""
        self._notify = notify
        self._problem: str | None = None
        self._seen: object = None
        self._good: AllowList | None = None

    def current(self) -> AllowList:
        """The allow-list in force now."""
        self._reread()
        good = self._good or AllowList()
        stored = self.stored()
        rules = [entry for entry in stored if entry.kind is SubjectKind.DEFAULT]
        listed = [entry for entry in stored if entry.kind is not SubjectKind.DEFAULT]
        return AllowList(
            [*good.rules, *rules], [*good.entries, *listed], self._problem, dict(self.operations())
        )

    def _reread(self) -> None:
        """Read the file again if it has changed, or if other operations are known."""
        if self.file is None:
            return
        known = frozenset(self.operations())
        mark = (_mark(self.file), known)
        if mark == self._seen:
            return
        self._seen = mark
        try:
            text = read(self.file)
            self._good = AllowList(*parse(text, self.file, known=known, zone=self.zone))
            self._problem = None
        except SettingsError as error:
            self._good = self._good or self._last_good()
            left = "its last valid version stays in force" if self._good else _BUILT_IN
            self._problem = None if self._good else f"{error}; {left}"
            if self._notify:
                self._notify(f"{error}; {left}")
            return
        if self.kept is not None:
            with suppress(OSError):  # without the copy, only a restart would notice
                partial = self.kept.with_suffix(".new")
                partial.write_text(text, "utf-8")
                partial.replace(self.kept)

    def _last_good(self) -> AllowList | None:
        if self.kept is None or self.file is None:
            return None
        try:
            return AllowList(*parse(self.kept.read_text("utf-8"), self.file, known=None, zone=self.zone))
        except (OSError, SettingsError, UnicodeDecodeError):
            return None


def read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise SettingsError(
                    f"everybody may write to the allow-list {path}, so it is not read; run: chmod o-w {path}"
                )
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise SettingsError(f"the allow-list {path} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise SettingsError(f"the allow-list {path} has more than {LARGEST:,} bytes; is this the right file?")
    try:
        return content.decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"the allow-list {path}, line {line}: not UTF-8; save it as UTF-8") from None


def _mark(path: Path) -> object:
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
