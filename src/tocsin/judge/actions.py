"""Plans actions on verdicts: a pure function of verdict, policy and the actions of the last hour."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from tocsin.core.actions import ActionKind, ActionStatus, Mode, PlannedAction, RecentAction
from tocsin.core.outcomes import TARGETS, Target
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Level, Verdict, worst
from tocsin.judge.permission import ROGUE
from tocsin.judge.policy import ARRAY_FAILING, ActionPolicy

__all__ = ["HOUR", "failing_array", "is_control", "most_severe_action", "planned_actions"]

HOUR = 3600
_PENDING_ONLY = (ActionKind.LEASE, ActionKind.HOLD)


def planned_actions(
    verdicts: Sequence[Verdict],
    rows: Sequence[Mapping[str, Any]],
    policy: ActionPolicy,
    recent: Sequence[RecentAction],
) -> list[PlannedAction]:
    """At most one action for each verdict: the most severe that its findings call for and its stage allows."""
    if policy.mode is Mode.ADVISE:
        return []
    limits: dict[str, _Limits] = {}
    found = []
    for verdict, row in zip(verdicts, rows, strict=True):
        chosen = most_severe_action(verdict, policy)
        if chosen is None or policy.excludes(row):
            continue
        kind, finding = chosen
        cluster = row["cluster"]
        limit = limits.setdefault(cluster, _Limits(policy, recent, cluster))
        found.append(
            PlannedAction(
                job=verdict.job,
                kind=kind,
                status=_status(kind, finding, verdict, policy, limit),
                at=verdict.at,
                expires=_expiry(kind, verdict.at, policy),
                reason=finding.text,
                detector=finding.detector,
                finding=finding.kind,
                stage=verdict.stage,
                seq=verdict.seq,
                user=verdict.user,
                cause=finding.case.cause if finding.case else None,
            )
        )
    return found


def failing_array(
    job: str, row: Mapping[str, Any], outcomes: Sequence[str], policy: ActionPolicy, at: int
) -> Verdict | None:
    """A verdict on an array whose first tasks all failed for one cause; None if they did not.

    `outcomes` are those of its ended tasks, in the order in which they ended. It is not a verdict at a stage: only the
    result of `planned_actions` is stored.
    """
    first = outcomes[: policy.array_failures]
    if not policy.array_failures or len(first) < policy.array_failures or len(set(first)) > 1:
        return None
    if first[0] not in TARGETS[Target.FAILED]:
        return None
    finding = Finding(
        detector="judge",
        kind=ARRAY_FAILING,
        level=Level.WARNING,
        text=f"the first {len(first)} tasks of the array all ended with {first[0].replace('_', ' ')}",
    )
    return Verdict(
        job=job,
        stage=Stage.SUBMIT,
        at=at,
        known_until=at,
        level=worst([finding.level]),
        user=row["user"],
        findings=[finding],
    )


def most_severe_action(verdict: Verdict, policy: ActionPolicy) -> tuple[ActionKind, Finding] | None:
    """The most severe action that a verdict's findings call for and its stage allows, and the finding."""
    found = [
        (kind, finding)
        for finding in verdict.findings
        if (kind := policy.action_for(finding)) and _possible(kind, verdict.stage)
    ]
    return max(found, key=lambda pair: pair[0].severity, default=None)


def _possible(kind: ActionKind, stage: Stage) -> bool:
    """Only a pending job can be kept from starting, and an ended one can only be reported."""
    if kind in _PENDING_ONLY:
        return stage is Stage.SUBMIT
    return kind is ActionKind.NOTIFY or stage is not Stage.END


def _expiry(kind: ActionKind, at: int, policy: ActionPolicy) -> int | None:
    return {ActionKind.LEASE: at + policy.lease, ActionKind.HOLD: at + policy.hold}.get(kind)


def _status(
    kind: ActionKind, finding: Finding, verdict: Verdict, policy: ActionPolicy, limit: "_Limits"
) -> ActionStatus:
    if kind is ActionKind.NOTIFY:
        return ActionStatus.DONE if policy.mode is Mode.ACT else ActionStatus.SHADOW
    if finding.kind != ROGUE and is_control(verdict.job, policy.control):
        return ActionStatus.CONTROL
    if not limit.allow(verdict, finding):
        return ActionStatus.LIMITED
    return ActionStatus.PLANNED if policy.mode is Mode.ACT else ActionStatus.SHADOW


def is_control(job: str, share: float) -> bool:
    """Whether a job belongs to the control share; always the same for the same job.

    >>> is_control("lab:17@1794775393", 0.0), is_control("lab:17@1794775393", 1.0)
    (False, True)
    """
    return int.from_bytes(sha256(job.encode()).digest()[:8], "big") < share * 2**64


class _Limits:
    """Counts the actions of the last hour on one cluster, including those being planned.

    For misuse, users are counted, not jobs, and separately from everything else: otherwise a user could use up the
    limits with many jobs, and the next job would run.
    """

    def __init__(self, policy: ActionPolicy, recent: Sequence[RecentAction], cluster: str) -> None:
        self._policy = policy
        self._shadow = policy.mode is Mode.SHADOW
        self._counted = [
            action
            for action in recent
            if action.job.startswith(f"{cluster}:") and action.shadow == self._shadow
        ]

    def allow(self, verdict: Verdict, finding: Finding) -> bool:
        misuse = finding.kind == ROGUE
        alike = [
            action.user
            for action in self._counted
            if action.at > verdict.at - HOUR and (action.finding == ROGUE) == misuse
        ]
        if not self._within(misuse, verdict.user, Counter(alike)):
            return False
        self._counted.append(RecentAction(verdict.job, verdict.user, verdict.at, finding.kind, self._shadow))
        return True

    def _within(self, misuse: bool, user: str | None, users: Counter[str | None]) -> bool:
        most, each = self._policy.per_hour, self._policy.per_user_hour
        if misuse:
            return not most or user in users or len(users) < most
        return (not most or users.total() < most) and (not each or users[user] < each)
