"""Policy as data: which findings open a case."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tocsin.core.errors import SettingsError
from tocsin.core.fields import FIELDS
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level

__all__ = ["NO_CASES", "OPERATIONS", "ROGUE_CASES", "Policy", "Rule"]

OPERATIONS = "operations"
"""As a subject: the operations of a rogue job, which are no field of its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Findings of this detector, kind and level open a case; `*` matches anything.

    `subject` is a field of the job's request, or OPERATIONS: findings on jobs with the same value share one case.
    """

    detector: str = "*"
    kind: str = "*"
    level: Level = Level.CRITICAL
    subject: str = "name"
    confirmed_rings: bool = False
    """Whether a confirmed case still rings: misuse does not end because somebody has seen it."""

    def __post_init__(self) -> None:
        if self.subject == OPERATIONS:
            return
        if self.subject not in FIELDS or FIELDS[self.subject].stage is not Stage.SUBMIT:
            raise SettingsError(
                f'"{self.subject}" in a rule is not a field of a request; a cause must be known at submission'
            )

    def covers(self, finding: Finding) -> bool:
        return (
            finding.level is self.level
            and fnmatchcase(finding.detector, self.detector)
            and fnmatchcase(finding.kind, self.kind)
        )


@dataclass(frozen=True, slots=True)
class Policy:
    """The first rule that covers a finding applies."""

    rules: Sequence[Rule] = ()

    def rule_for(self, finding: Finding) -> Rule | None:
        return next((rule for rule in self.rules if rule.covers(finding)), None)


NO_CASES = Policy()
"""The default: findings are reported, and nobody has to answer them."""

ROGUE_CASES = Policy([Rule(kind="rogue", subject=OPERATIONS, confirmed_rings=True)])
"""Rogue jobs open one case per user and set of operations."""
