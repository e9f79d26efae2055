"""Explains the verdict that a job was given: what it said then, and what has changed since."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from tocsin.core.decision import KnownCase
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import CaseStatus, Finding, Level, Rogue, Verdict, severity, worst
from tocsin.judge.habits import HABIT
from tocsin.judge.permission import ROGUE

__all__ = ["TODAY", "explain_past_verdict"]

TODAY = "today"
"""A finding about what has changed since the verdict was given."""
_PARTS = ("failure", "workload", "resources", "nodes", "anomalies", "advice")


def explain_past_verdict(
    today: Verdict,
    verdicts: Sequence[Verdict],
    cases: Mapping[str, KnownCase],
    rule_today: Callable[[str], str] | None = None,
) -> Verdict:
    """The last of these earlier verdicts at the stage of today's, or today's if there is none.

    `rule_today` is the rule for an operation if the job were submitted today.
    Cases count as they are today. A job with a confirmed case is never ok, whatever the verdict at the stage said.
    """
    given = _verdict_at_stage(today.job, today.stage, verdicts)
    verdict = _with_changes_since(given, today, cases, rule_today) if given else today
    case = _confirmed(today.job, verdicts, cases)
    if case is None or verdict.level is Level.CRITICAL:
        return verdict
    text = case.reference.text
    finding = Finding(detector="cases", kind=ROGUE, level=Level.CRITICAL, text=text, case=case.reference)
    rogue = Rogue(
        rogue=True, operations=list(case.operations), rule=text, action="alarm", case=case.reference
    )
    return replace(verdict, level=Level.CRITICAL, findings=[finding, *verdict.findings], rogue=rogue)


def _verdict_at_stage(job: str, stage: Stage, verdicts: Sequence[Verdict]) -> Verdict | None:
    """At submission, a task without a verdict of its own has its array's."""
    at_stage = [verdict for verdict in verdicts if verdict.stage is stage]
    own = [verdict for verdict in at_stage if verdict.job == job]
    if not own and stage is Stage.SUBMIT:
        array = str(parse_key(job)._replace(task=None))
        own = [verdict for verdict in at_stage if verdict.job == array]
    return max(own, key=lambda verdict: verdict.seq, default=None)


def _confirmed(job: str, verdicts: Sequence[Verdict], cases: Mapping[str, KnownCase]) -> KnownCase | None:
    """A confirmed case of the job, at any stage, or of its array."""
    causes = {f.case.cause for verdict in verdicts for f in verdict.findings if f.case and f.kind == ROGUE}
    jobs = {job, str(parse_key(job)._replace(task=None))}
    return next(
        (
            case
            for cause, case in cases.items()
            if case.status is CaseStatus.CONFIRMED and (cause in causes or case.job in jobs)
        ),
        None,
    )


def _with_changes_since(
    given: Verdict,
    today: Verdict,
    cases: Mapping[str, KnownCase],
    rule_today: Callable[[str], str] | None,
) -> Verdict:
    rogue = given.rogue
    findings = list(given.findings)
    known = cases.get(rogue.case.cause) if rogue and rogue.case else None
    if rogue and known:
        dismissed, case = known.status is CaseStatus.DISMISSED, known.reference
        rogue = replace(rogue, rogue=not dismissed, action="none" if dismissed else "alarm", case=case)
        for number, finding in enumerate(findings):
            if finding.kind == ROGUE:
                level = Level.OK if dismissed else Level.CRITICAL
                findings[number] = replace(finding, level=level, case=case)
            elif dismissed and finding.operation in rogue.operations and finding.kind != HABIT:
                findings[number] = replace(finding, level=Level.OK, case=case)
    findings.sort(key=lambda finding: -severity(finding.level))
    # A verdict without findings may be unknown, because nothing could be checked.
    level = worst([finding.level for finding in findings]) if given.findings else given.level
    parts = {name: getattr(given, name) or getattr(today, name) for name in _PARTS}
    if given.failure and today.failure and given.failure.probability == today.failure.probability:
        parts["failure"] = today.failure  # with the explanation, which applies to this prediction only
    notes = [
        Finding(detector="judge", kind=TODAY, level=Level.OK, text=text)
        for text in _changes(given, level, today, rule_today)
    ]
    missing = {name: why for name, why in given.missing.items() if not parts.get(name)}
    return replace(
        given,
        job=today.job,
        level=level,
        findings=[*findings, *notes],
        rogue=rogue,
        missing=missing,
        **parts,
    )


def _changes(
    given: Verdict, level: Level, today: Verdict, rule_today: Callable[[str], str] | None
) -> Iterator[str]:
    """What would be different if the verdict were given today."""
    if today.level is not level:
        worse = next((f.text for f in today.findings if f.level is today.level), None)
        yield f"a verdict given today would be {today.level}" + (f": {worse}" if worse else "")
    models = [
        f"{name} {given.models.get(name, 'none')} then, {today.models.get(name, 'none')} today"
        for name in sorted(given.models | today.models)
        if given.models.get(name) != today.models.get(name)
    ]
    if models:
        yield f"models have changed: {'; '.join(models)}"
    if (
        given.failure
        and today.failure
        and abs(given.failure.probability - today.failure.probability) >= 0.005
    ):
        yield f"risk of failure: {given.failure.probability:.0%} then, {today.failure.probability:.0%} today"
    if given.rogue and given.rogue.operations and rule_today:
        rule = "; ".join(map(rule_today, given.rogue.operations))
        if rule != given.rogue.rule:
            yield f"judged so at {format_instant(given.at)}; judged today: {rule}"
