"""The allow-list in force: built-in defaults, entries of the store, and those of a file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.errors import SettingsError
from tocsin.core.units import format_instant
from tocsin.judge.allow_file import WHO, parse, read

__all__ = ["DEFAULTS", "AllowBook", "AllowList", "Ruling"]

DEFAULTS: Mapping[str, DefaultRule] = {
    "ai": DefaultRule.ALLOWED,
    "cryptomining": DefaultRule.NEVER,
    "cyber": DefaultRule.LISTED,
}
"""The rules until an operator sets others. An operation that a site adds is for listed subjects only."""
_BUILT_IN = "there is no earlier good one, so the built-in rules and the entries of `tocsin allow` apply"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a job may run an operation, and the rule that decides, in words."""

    allowed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """Rules and entries at one instant."""

    defaults: Mapping[str, DefaultRule] = field(default_factory=dict)
    entries: Sequence[AllowEntry] = ()
    problem: str | None = None
    """Why the file is not in force, if no earlier good one is either."""

    def default(self, operation: str) -> DefaultRule:
        return self.defaults.get(operation) or DEFAULTS.get(operation, DefaultRule.LISTED)

    def ruling(self, operation: str, job: Mapping[str, Any]) -> Ruling:
        """The rule for a job, as of its submission."""
        default = self.default(operation)
        if default is DefaultRule.ALLOWED:
            return Ruling(True, f"{operation} is allowed for everybody")
        if default is DefaultRule.NEVER:
            return Ruling(False, f"{operation} is never allowed")
        mine = [e for e in self.entries if e.operation == operation and e.name == job.get(str(e.kind))]
        for entry in mine:
            if entry.counts(job["submit"]):
                return Ruling(True, f"{operation} is for listed ones only, and {_listed(entry)}")
        who = [f"{kind} {job[str(kind)]}" for kind in WHO if job.get(str(kind))]
        nobody = f"{' or '.join(who)} is not listed" if who else "nobody knows whose job it is"
        other = f" ({mine[-1].kind} {mine[-1].name} is {_times(mine[-1])})" if mine else ""
        return Ruling(False, f"{operation} is for listed ones only, and {nobody}{other}")


def _listed(entry: AllowEntry) -> str:
    why = [part for part in (entry.reason, entry.granted_by and f"granted by {entry.granted_by}") if part]
    reason = f": {', '.join(why)}" if why else ""
    return f"{entry.kind} {entry.name} is {_times(entry)} ({entry.origin}{reason})"


def _times(entry: AllowEntry) -> str:
    words = ["listed"]
    if entry.since is not None:
        words.append(f"from {format_instant(entry.since)}")
    if entry.until is not None:
        words.append(f"until {format_instant(entry.until)}")
    return " ".join(words)


class AllowBook:
    """Reads the allow-list from the store and from a file.

    A broken file is refused, and the last good one stays in force.
    """

    def __init__(
        self,
        stored: Callable[[], Sequence[AllowEntry]],
        file: Path | None = None,
        *,
        kept: Path | None = None,
        zone: tzinfo = UTC,
        operations: Callable[[], Collection[str]] = lambda: DEFAULTS,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.stored = stored
        self.file = file
        self.kept = kept
        """A copy of the last good file, for the next process."""
        self.zone = zone
        self.operations = operations
        """The operations that a file may name."""
        self._say = say
        self._problem: str | None = None
        self._seen: object = None
        self._good: AllowList | None = None

    def current(self) -> AllowList:
        """The allow-list in force now."""
        self._reread()
        good = self._good or AllowList()
        stored = self.stored()
        rules = {
            entry.operation: DefaultRule(entry.name)
            for entry in stored
            if entry.kind is SubjectKind.DEFAULT and entry.until is None
        }
        listed = [entry for entry in stored if entry.kind is not SubjectKind.DEFAULT]
        return AllowList({**rules, **good.defaults}, [*good.entries, *listed], self._problem)

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
            left = "the last good one stays in force" if self._good else _BUILT_IN
            self._problem = None if self._good else f"{error}; {left}"
            if self._say:
                self._say(f"{error}; {left}")
            return
        if self.kept is not None:
            with suppress(OSError):  # without the copy only a restart would notice
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


def _mark(path: Path) -> object:
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode
