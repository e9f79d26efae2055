"""Rogue jobs: whether a job may run its operations, by the allow-list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin.core.verdict import SEEN_FROM, Finding, Level, Rogue, Workload
from tocsin.judge.allow import AllowList

__all__ = ["ROGUE", "SUSPECTED", "Permission", "permission", "permitted_as_ok", "with_notes"]

ROGUE = "rogue"
SUSPECTED = "suspected"
"""An operation against the rules that only the execution model sees: a warning, never an accusation."""
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class Permission:
    """What the allow-list says of a job."""

    rogue: Rogue
    findings: list[Finding] = field(default_factory=list)
    permitted: Mapping[str, str] = field(default_factory=dict)
    """The operations that it may run, each with the rule."""
    by_sign: bool = False
    """Whether a sign in its script shows that it is rogue, not a model alone."""


def permission(workload: Workload, job: Mapping[str, Any], allowed: AllowList, detector: str) -> Permission:
    """Whether the job may run its operations, with the deciding rule, and a finding if it may not.

    Only its script makes a job rogue: the execution model learned from the script classifier and proves nothing alone.
    """
    probability = workload.operations
    seen = sorted((name for name, p in probability.items() if p >= SEEN_FROM), key=lambda n: -probability[n])
    rulings = {name: allowed.ruling(name, job) for name in seen}
    by_script = workload.submission.operations if workload.submission else {}
    against = [name for name in seen if not rulings[name].allowed]
    wrong = [name for name in against if by_script.get(name, 0.0) >= SEEN_FROM]
    suspected = [
        _suspicion(name, workload, rulings[name].rule, detector) for name in against if name not in wrong
    ]
    deciding = wrong or [name for name in seen if name not in against]
    rule = "; ".join(rulings[name].rule for name in deciding) or "no operation with a rule was found"
    rogue = Rogue(rogue=bool(wrong), operations=deciding, rule=rule, action="alarm" if wrong else "none")
    permitted = {name: rulings[name].rule for name in seen if rulings[name].allowed}
    if not wrong:
        return Permission(rogue, suspected, permitted)
    worst = wrong[0]
    finding = Finding(
        detector=detector,
        kind=ROGUE,
        level=Level.CRITICAL,
        text=f"classified as {' and '.join(wrong)} ({probability[worst]:.0%}); {rule}",
        score=probability[worst],
        threshold=SEEN_FROM,
        evidence=_evidence(workload, wrong),
    )
    signs = workload.submission.signs if workload.submission else []
    return Permission(rogue, [finding, *suspected], permitted, by_sign=not set(wrong).isdisjoint(signs))


def _suspicion(operation: str, workload: Workload, rule: str, detector: str) -> Finding:
    p = workload.operations[operation]
    return Finding(
        detector=detector,
        kind=SUSPECTED,
        level=Level.WARNING,
        text=f"may be {operation} by what it did when it ran ({p:.0%}), which its script does not show; {rule}",
        score=p,
        threshold=SEEN_FROM,
        operation=operation,
        evidence=_evidence(workload, [operation]),
    )


def with_notes(found: Permission, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Merges other findings with the allow-list's: notes on an operation that breaks the rules become evidence."""
    wrong = found.rogue.operations if found.rogue.rogue else []
    notes = [f for f in findings if f.level is Level.OK and f.operation in wrong]
    others = [f for f in findings if f not in notes]
    texts = [note.text for note in notes][:_MOST_LINES]
    own = [
        replace(f, evidence=list(dict.fromkeys([*f.evidence, *texts]))) if f.kind == ROGUE else f
        for f in found.findings
    ]
    return others, own


def permitted_as_ok(findings: Sequence[Finding], permitted: Mapping[str, str]) -> list[Finding]:
    """The findings; a warning about a permitted operation stays, at level ok."""
    return [
        replace(finding, level=Level.OK, text=f"{finding.text} ({permitted[finding.operation]})")
        if finding.operation and finding.operation in permitted and finding.level is not Level.OK
        else finding
        for finding in findings
    ]


def _evidence(workload: Workload, operations: Sequence[str]) -> list[str]:
    submission, execution = workload.submission, workload.execution
    found = []
    for name in operations:
        lines = (
            [str(e.line) for e in submission.evidence if e.operation == name and e.line > 0]
            if submission
            else []
        )
        if lines:
            found.append(
                f"line{'s' if len(lines) > 1 else ''} {', '.join(lines[:_MOST_LINES])} of its script"
            )
        if execution and name in execution.operations:
            before = submission.operations.get(name) if submission else None
            was = "" if before is None else f"; by its script it was {before:.0%}"
            found.append(f"by what it did when it ran: {execution.operations[name]:.0%}{was}")
    return found
