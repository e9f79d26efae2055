"""A verdict in the making: what the detectors answered about one job, then its permission and its case."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tocsin.core.detector import Parts
from tocsin.core.stages import Stage
from tocsin.core.verdict import Advice, CaseStatus, Finding, Level, Rogue, Verdict, Workload, severity, worst
from tocsin.judge.allow import AllowList
from tocsin.judge.answers import Answer
from tocsin.judge.habits import HABIT
from tocsin.judge.permission import ROGUE, SUSPECTED, permission, permitted_as_ok, with_notes

__all__ = ["Draft"]

_SINGLE = ("failure", "workload", "resources", "nodes")  # a verdict has one of each


class Draft:
    """A verdict that lacks what only the caller knows: its job, stage and times."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.findings: list[Finding] = []
        self.parts: dict[str, Any] = {
            "anomalies": [],
            "advice": _without_conflicts([answer.parts for answer in answers]),
        }
        self.source: dict[str, str] = {}
        """The detector of each single part."""
        self.models: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.by_sign = False
        self.answers = answers
        for answer in answers:
            self._add(answer)

    def _add(self, answer: Answer) -> None:
        parts = answer.parts
        if answer.version is not None:
            self.models[answer.detector] = answer.version
        self.findings += parts.findings
        self.parts["anomalies"] += parts.anomalies
        self.missing |= parts.missing
        for part in _SINGLE:
            value = getattr(parts, part)
            if value is None:
                continue
            if part in self.parts:
                self.missing[f"{part} by {answer.detector}"] = f"{self.source[part]} gave it already"
            else:
                self.parts[part], self.source[part] = value, answer.detector

    @property
    def workload(self) -> Workload | None:
        return self.parts.get("workload")

    @property
    def wrong(self) -> list[str]:
        """The operations that break the rules."""
        rogue: Rogue | None = self.parts.get("rogue")
        return rogue.operations if rogue and rogue.rogue else []

    def check_permission(self, row: Mapping[str, Any], allowed: AllowList) -> None:
        assert self.workload, "asked for only then"
        found = permission(self.workload, row, allowed, self.source["workload"])
        others, own = with_notes(found, permitted_as_ok(self.findings, found.permitted))
        warned = {f.operation for f in others if f.level is not Level.OK}
        self.findings = others + [f for f in own if f.kind != SUSPECTED or f.operation not in warned]
        self.parts["rogue"] = found.rogue
        self.by_sign = found.by_sign
        if allowed.problem:
            self.missing["allow-list"] = allowed.problem

    def apply_case(self) -> None:
        """A job whose case was dismissed is not rogue, and other findings on its operations are silenced, too."""
        case = next((f.case for f in self.findings if f.kind == ROGUE and f.case), None)
        if case is None:
            return
        rogue: Rogue = replace(self.parts["rogue"], case=case)
        if case.status is CaseStatus.DISMISSED:
            rogue = replace(rogue, rogue=False, action="none")
            self.findings = [
                replace(f, level=Level.OK, case=case)
                if f.operation in rogue.operations and f.kind != HABIT and f.level is not Level.OK
                else f
                for f in self.findings
            ]
        self.parts["rogue"] = rogue

    def verdict(self, *, stage: Stage, **more: Any) -> Verdict:
        findings = sorted(self.findings, key=lambda finding: -severity(finding.level))
        levels = [finding.level for finding in findings]
        if not self._was_checked(stage):
            levels.append(Level.UNKNOWN)
        return Verdict(
            stage=stage,
            level=worst(levels),
            findings=findings,
            models=self.models,
            missing=self.missing,
            **self.parts,
            **more,
        )

    def _was_checked(self, stage: Stage) -> bool:
        """Whether every detector checked the job; after submission, those with a model for the stage, at least one."""
        expected = [answer for answer in self.answers if answer.asked or stage is Stage.SUBMIT]
        return all(answer.checked for answer in expected) if expected else not self.answers


def _without_conflicts(parts: Sequence[Parts]) -> list[Advice]:
    """At most one value per field and one edit per line: a person can follow only one.

    Advice from a detector that calls the job critical comes first, since the job cannot run otherwise; then changes
    whose effect is known.
    """
    all_advice = [
        (
            2 if any(f.level is Level.CRITICAL for f in each.findings) else advice.risk_after is not None,
            advice,
        )
        for each in parts
        for advice in each.advice
    ]
    kept: list[Advice] = []
    for _, advice in sorted(all_advice, key=lambda pair: -pair[0]):
        if not any(_conflict(advice, other) for other in kept):
            kept.append(advice)
    chosen = {id(advice) for advice in kept}
    return [advice for _, advice in all_advice if id(advice) in chosen]


def _conflict(one: Advice, other: Advice) -> bool:
    if one.field is not None and one.field == other.field:
        return True
    lines = [advice.edit.line for advice in (one, other) if advice.edit and advice.edit.old is not None]
    return len(lines) == 2 and lines[0] == lines[1]
