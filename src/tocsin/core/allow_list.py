"""Entries of the allow-list: who may run which operation, from when to when, why, and who granted it."""

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["AllowEntry", "DefaultRule", "SubjectKind"]


class SubjectKind(StrEnum):
    """Whom an entry is for; `default` is the rule for everybody who is not listed."""

    USER = "user"
    ACCOUNT = "account"
    GROUP = "group"
    DEFAULT = "default"


class DefaultRule(StrEnum):
    """Who may run an operation: everybody, listed subjects only, or nobody."""

    ALLOWED = "allowed"
    LISTED = "listed"
    NEVER = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowEntry:
    """One entry of the allow-list, for jobs submitted from `since` on and before `until`.

    An entry of kind `default` is the rule for everybody who is not listed; its name is a DefaultRule.
    """

    operation: str
    kind: SubjectKind
    name: str
    since: int | None = None
    until: int | None = None
    reason: str = ""
    granted_by: str = ""
    origin: str = ""
    """Where it comes from: its number in the store, or a file and line."""

    def counts(self, at: int) -> bool:
        return (self.since is None or self.since <= at) and (self.until is None or at < self.until)
