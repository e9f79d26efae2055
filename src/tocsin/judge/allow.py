"""The allow-list in force: built-in defaults, entries of the store, and entries of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.core.allow_list import AllowEntry, DefaultRule, SubjectKind
from tocsin.core.units import format_instant
from tocsin.judge.allow_file import WHO

__all__ = ["DEFAULTS", "AllowList", "Ruling"]

DEFAULTS: Mapping[str, DefaultRule] = {
    "ai": DefaultRule.ALLOWED,
    "cryptomining": DefaultRule.NEVER,
    "cyber": DefaultRule.LISTED,
}
"""The rules until an operator sets others. An operation that a site adds is for listed subjects only."""

_LISTED_ONLY = "{} is allowed only for listed users, accounts and groups"


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a job may run an operation, and the deciding rule in words."""

    allowed: bool
    rule: str


@dataclass(frozen=True, slots=True)
class AllowList:
    """Rules for everybody, and entries; each for jobs submitted in its time."""

    rules: Sequence[AllowEntry] = ()
    """The first that covers an operation and an instant applies; else the built-in rules do."""
    entries: Sequence[AllowEntry] = ()
    problem: str | None = None
    """Why the file is not in force, if no earlier valid one is either."""
    known_since: Mapping[str, int | None] = field(default_factory=dict)
    """When each operation that the site added became known; None: always."""

    def rule(self, operation: str, at: int) -> AllowEntry:
        """The rule for everybody, for jobs submitted at this instant."""
        for rule in self.rules:
            if rule.operation == operation and rule.counts(at):
                return rule
        since = self.known_since.get(operation)
        built_in = DEFAULTS.get(operation, DefaultRule.LISTED)
        if since is not None and at < since:  # nobody could know that it would be forbidden
            return AllowEntry(
                operation=operation, kind=SubjectKind.DEFAULT, name=str(DefaultRule.ALLOWED), until=since
            )
        return AllowEntry(operation=operation, kind=SubjectKind.DEFAULT, name=str(built_in))

    def ruling(self, operation: str, job: Mapping[str, Any]) -> Ruling:
        """The rule for a job, as of its submission."""
        rule = self.rule(operation, job["submit"])
        when = f" ({_times('rule', rule)})" if rule.since is not None or rule.until is not None else ""
        if rule.name == DefaultRule.ALLOWED:
            return Ruling(True, f"{operation} is allowed for everybody{when}")
        if rule.name == DefaultRule.NEVER:
            return Ruling(False, f"{operation} is never allowed{when}")
        mine = [e for e in self.entries if e.operation == operation and e.name == job.get(str(e.kind))]
        for entry in mine:
            if entry.counts(job["submit"]):
                return Ruling(True, f"{_LISTED_ONLY.format(operation)}; {_listed(entry)}")
        who = [f"{kind} {job[str(kind)]}" for kind in WHO if job.get(str(kind))]
        nobody = _not_listed(who) if who else "the job's user is unknown"
        other = f" ({mine[-1].kind} {mine[-1].name} is {_times('listed', mine[-1])})" if mine else ""
        return Ruling(False, f"{_LISTED_ONLY.format(operation)}; {nobody}{other}")


def _not_listed(who: Sequence[str]) -> str:
    return f"none of {', '.join(who)} is listed" if len(who) > 1 else f"{who[0]} is not listed"


def _listed(entry: AllowEntry) -> str:
    why = [part for part in (entry.reason, entry.granted_by and f"granted by {entry.granted_by}") if part]
    reason = f": {', '.join(why)}" if why else ""
    return f"{entry.kind} {entry.name} is {_times('listed', entry)} ({entry.origin}{reason})"


def _times(what: str, entry: AllowEntry) -> str:
    words = [what]
    if entry.since is not None:
        words.append(f"from {format_instant(entry.since)}")
    if entry.until is not None:
        words.append(f"until {format_instant(entry.until)}")
    return " ".join(words)
