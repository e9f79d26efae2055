"""The allow-list in force: the built-in rules, the store's and those of a file, of which the last good one counts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from tocsin.core.errors import SettingsError
from tocsin.core.units import format_instant
from tocsin.judge.allow_file import WHO, parse, read
from tocsin.store.allow import AllowEntry, DefaultRule, SubjectKind, entries
from tocsin.store.database import Store

__all__ = ["DEFAULTS", "AllowBook", "AllowList", "Ruling"]

DEFAULTS: Mapping[str, DefaultRule] = {
    "ai": DefaultRule.ALLOWED,
    "cryptomining": DefaultRule.NEVER,
    "cyber": DefaultRule.LISTED,
}
"""What holds until an operator says otherwise. An operation that a site adds itself is for listed ones only."""
_BUILT_IN = "no good one is remembered, so the built-in rules hold, and what `tocsin allow` keeps"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a job may run an operation, and the rule that says so, in words."""

    allowed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """Rules and permissions as they stand."""

    defaults: Mapping[str, DefaultRule] = field(default_factory=dict)
    grants: Sequence[AllowEntry] = ()

    def default(self, operation: str) -> DefaultRule:
        return self.defaults.get(operation) or DEFAULTS.get(operation, DefaultRule.LISTED)

    def ruling(self, operation: str, job: Mapping[str, Any]) -> Ruling:
        """What holds for a job, at the instant of its submission."""
        default = self.default(operation)
        if default is DefaultRule.ALLOWED:
            return Ruling(True, f"{operation} is allowed for everybody")
        if default is DefaultRule.NEVER:
            return Ruling(False, f"{operation} is never allowed")
        mine = [g for g in self.grants if g.operation == operation and g.name == job.get(str(g.kind))]
        for grant in mine:
            if grant.counts(job["submit"]):
                return Ruling(True, f"{operation} is for listed ones only, and {_listed(grant)}")
        who = [f"{kind} {job[str(kind)]}" for kind in WHO if job.get(str(kind))]
        nobody = f"{' or '.join(who)} is not listed" if who else "nobody knows whose job it is"
        other = f" ({mine[-1].kind} {mine[-1].name} is {_times(mine[-1])})" if mine else ""
        return Ruling(False, f"{operation} is for listed ones only, and {nobody}{other}")


def _listed(grant: AllowEntry) -> str:
    why = [part for part in (grant.reason, grant.granted_by and f"granted by {grant.granted_by}") if part]
    said = f": {', '.join(why)}" if why else ""
    return f"{grant.kind} {grant.name} is {_times(grant)} ({grant.origin}{said})"


def _times(grant: AllowEntry) -> str:
    words = ["listed"]
    if grant.since is not None:
        words.append(f"from {format_instant(grant.since)}")
    if grant.until is not None:
        words.append(f"until {format_instant(grant.until)}")
    return " ".join(words)


class AllowBook:
    """The rules of the store and of a file.

    A file that is broken is refused, and the last good one stays in force; without one, the built-in rules do.
    """

    def __init__(
        self,
        store: Store,
        file: Path | None = None,
        *,
        kept: Path | None = None,
        zone: tzinfo = UTC,
        operations: Callable[[], Collection[str]] = lambda: DEFAULTS,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.store = store
        self.file = file
        self.kept = kept
        """Where the last good file is copied to, so that it outlives this process."""
        self.zone = zone
        self.operations = operations
        """The names that a file may use: those that there are when it is read."""
        self.trouble: str | None = None
        """Why the file is not in force, where no good one is remembered either."""
        self._say = say
        self._seen: object = None
        self._good: AllowList | None = None

    def current(self) -> AllowList:
        """All that counts now."""
        self._look()
        good = self._good or AllowList()
        stored = entries(self.store)
        rules = {
            grant.operation: DefaultRule(grant.name)
            for grant in stored
            if grant.kind is SubjectKind.DEFAULT and grant.until is None
        }
        listed = [grant for grant in stored if grant.kind is not SubjectKind.DEFAULT]
        return AllowList({**rules, **good.defaults}, [*good.grants, *listed])

    def _look(self) -> None:
        """Read the file again if it is another one than the last time, or if there are other operations."""
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
            self.trouble = None
        except SettingsError as error:
            self._good = self._good or self._remembered()
            left = "the last good one stays in force" if self._good else _BUILT_IN
            self.trouble = None if self._good else f"{error}; {left}"
            if self._say:
                self._say(f"{error}; {left}")
            return
        if self.kept is not None:
            with suppress(OSError):  # without the copy only a restart would notice
                partial = self.kept.with_suffix(".new")
                partial.write_text(text, "utf-8")
                partial.replace(self.kept)

    def _remembered(self) -> AllowList | None:
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
