"""Policy as data: which findings open a case, and which lead to an action."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tocsin.core.actions import ActionKind, Mode
from tocsin.core.errors import SettingsError
from tocsin.core.fields import FIELDS
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS, Finding, Level, severity
from tocsin.judge.permission import ROGUE

__all__ = [
    "ARRAY_FAILING",
    "DEFAULT_RULES",
    "NO_ACTIONS",
    "NO_CASES",
    "OPERATIONS",
    "ROGUE_CASES",
    "ActionPolicy",
    "ActionRule",
    "Policy",
    "Rule",
]

ARRAY_FAILING = "array_failing"
"""The kind of a finding: the first tasks of an array all failed for one cause."""
OPERATIONS = "operations"
"""As a subject: the operations of a rogue job, which are not a field of its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Findings of this detector, kind and level open a case; `*` matches anything.

    `subject` is a field of the job's request, or OPERATIONS: findings on jobs with the same value share one case.
    """

    detector: str = "*"
    kind: str = "*"
    level: Level = Level.CRITICAL
    subject: str = "name"
    alarm_if_confirmed: bool = False
    """Whether a confirmed case still raises alarms: misuse does not end because somebody has seen it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRule:
    """Findings of this detector and kind, from this level and score on, lead to an action; `*` matches anything."""

    name: str
    """The rule's name, for error messages."""
    detector: str = "*"
    kind: str = "*"
    level: Level = Level.WARNING
    score: float = 0.0
    action: ActionKind = ActionKind.NOTIFY

    def __post_init__(self) -> None:
        if self.level not in ALARMS:
            raise SettingsError(
                f'rule.{self.name}.level is "{self.level}"; write {" or ".join(ALARMS)}: nothing else is an alarm'
            )
        if self.action is ActionKind.HOLD and self.kind != ROGUE:
            raise SettingsError(
                f'rule.{self.name} holds jobs for findings of kind "{self.kind}"; an administrator\'s hold is for misuse '
                f'only: set kind = "{ROGUE}", or action = "{ActionKind.LEASE}"'
            )

    def covers(self, finding: Finding) -> bool:
        return (
            finding.level in ALARMS
            and severity(finding.level) >= severity(self.level)
            and (finding.score or 0.0) >= self.score
            and fnmatchcase(finding.detector, self.detector)
            and fnmatchcase(finding.kind, self.kind)
        )


DEFAULT_RULES = (
    ActionRule(name="rogue", kind=ROGUE, level=Level.CRITICAL, action=ActionKind.HOLD),
    ActionRule(name="failure", detector="failure", kind="will_fail", action=ActionKind.LEASE),
    ActionRule(name="array", kind=ARRAY_FAILING, action=ActionKind.LEASE),
)
"""For a site that has set none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPolicy:
    """What may be done to jobs; of all rules that match a finding, the most severe action applies."""

    mode: Mode = Mode.ADVISE
    rules: Sequence[ActionRule] = ()
    lease: int = 3600
    """Seconds after which a leased job may start in any case."""
    hold: int = 86400
    """Seconds after which a held job is released."""
    per_hour: int = 0
    per_user_hour: int = 0
    """Limit on actions per hour; 0: no limit."""
    control: float = 0.0
    """Share of jobs that are left alone; misuse is exempt."""
    array_failures: int = 0
    """Number of failures of one kind among the first tasks of an array that make a finding; 0: never."""
    excluded: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By field of the request, the values of jobs that are never acted on."""

    def action_for(self, finding: Finding) -> ActionKind | None:
        kinds = [rule.action for rule in self.rules if rule.covers(finding)]
        return max(kinds, key=lambda kind: kind.severity, default=None)

    def excludes(self, job: Mapping[str, Any]) -> bool:
        """A job may name several partitions, with commas."""
        return any(
            not set(str(job[name] or "").split(",")).isdisjoint(values)
            for name, values in self.excluded.items()
        )


NO_ACTIONS = ActionPolicy()
"""The default: only a process that follows a live cluster plans actions."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The first rule that matches a finding applies."""

    rules: Sequence[Rule] = ()
    actions: ActionPolicy = NO_ACTIONS

    def rule_for(self, finding: Finding) -> Rule | None:
        return next((rule for rule in self.rules if rule.covers(finding)), None)


NO_CASES = Policy()
"""The default: findings are reported, and nobody is asked to answer them."""

ROGUE_CASES = Policy([Rule(kind=ROGUE, subject=OPERATIONS, alarm_if_confirmed=True)])
"""Rogue jobs open one case per user and set of operations; scripts with a sign, one each."""
