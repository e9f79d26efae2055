"""A verdict in words: on one screen, or in one line."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from tocsin.app.text import clock, count
from tocsin.core.actions import ActionKind, ActionStatus
from tocsin.core.outcomes import TARGETS
from tocsin.core.printable import printable
from tocsin.core.stages import Stage
from tocsin.core.units import format_duration, parse_instant, rounded_memory
from tocsin.core.verdict import (
    ALARMS,
    SEEN_FROM,
    UNKNOWN_CAUSE,
    CaseStatus,
    Cause,
    Finding,
    Level,
    Screening,
    Verdict,
)

__all__ = [
    "action_lines",
    "cause_lines",
    "check_headline",
    "explain_headline",
    "one_time",
    "stage_time",
    "verdict_line",
    "verdict_screen",
]

_DONE = {ActionKind.HOLD: "held", ActionKind.LEASE: "delayed", ActionKind.CANCEL: "cancelled"}
_ONE_TIME = ("habit",)
"""Kinds of findings that only one verdict carries; they are printed whatever else is worse."""
_AI, _AI_DOMAIN = "ai", "machine learning"
_BEFORE = {
    Level.OK: "no problem found",
    Level.WARNING: "check this before you submit it",
    Level.CRITICAL: "this job will not work as requested",
}
_AFTERWARDS = {
    **_BEFORE,
    Level.WARNING: "there was reason for a warning",
    Level.CRITICAL: "it could not work as requested",
}
_TIMES = {
    Stage.SUBMIT: "at submission",
    Stage.START: "at its start",
    Stage.EARLY: "two minutes after its start",
    Stage.RUNNING: "while it ran",
    Stage.END: "at its end",
}
"""When each stage is, for a job named before."""


def stage_time(stage: Stage) -> str:
    return _TIMES[stage]


def check_headline(verdict: Verdict) -> str:
    """For a script that is not submitted yet."""
    return f"{'this job is not allowed to run here' if _is_rogue(verdict) else _problem(verdict, _BEFORE)}."


def explain_headline(verdict: Verdict, outcome: str | None) -> str:
    """For a past job, and how it ended."""
    problem = "it was not allowed to run" if _is_rogue(verdict) else _problem(verdict, _AFTERWARDS)
    ended = f" Its outcome: {outcome.replace('_', ' ')}." if outcome else ""
    return f"{verdict.job} as known {stage_time(verdict.stage)}: {problem}.{ended}"


def _problem(verdict: Verdict, words: Mapping[Level, str]) -> str:
    if verdict.level in ALARMS:
        return words[verdict.level]
    concerns = []
    if verdict.level is Level.UNKNOWN:
        parts = (part.partition(".")[0] for part in verdict.missing if not _is_qualified(verdict, part))
        unchecked = ", ".join(dict.fromkeys(parts))
        concerns.append(f"not everything could be checked ({unchecked})")
    if verdict.advice:  # without a finding, it comes from earlier runs
        concerns.append("earlier runs suggest a change (see below)")
    return ", but ".join([words[Level.OK], " and ".join(concerns)]) if concerns else words[Level.OK]


def verdict_screen(verdict: Verdict, headline: str) -> Iterator[str]:
    """One screen: what is wrong, what to change, what could not be checked."""
    yield f"{verdict.level.upper()}: {headline}"
    if verdict.cause:
        yield ""
        yield from cause_lines(verdict.cause)
    texts = [finding.text for finding in verdict.findings]
    reasons = {reason.text for reason in verdict.failure.contributions} if verdict.failure else set()
    for finding in verdict.findings:
        yield ""
        yield f"  {'note' if finding.level is Level.OK else finding.level}: {finding.text}"
        yield from (
            f"    {line}" for line in finding.evidence if line not in finding.text and line not in reasons
        )
        if finding.case:
            yield f"    {finding.case.text}"
    yield from _prediction(verdict, texts)
    yield from _classification(verdict)
    for advice in verdict.advice:
        risks = advice.risk_before, advice.risk_after
        change = (
            f", risk {risks[0]:.0%} -> {risks[1]:.0%}" if None not in risks and risks[0] != risks[1] else ""
        )
        yield ""
        yield f"  {advice.change}" + (f" ({advice.why}{change})" if advice.why not in texts else change)
        if advice.edit:
            yield f"    @@ line {advice.edit.line} @@"
            if advice.edit.old is not None:
                yield f"    -{advice.edit.old}"
            yield f"    +{advice.edit.new}"
    yield from _next_step(verdict)
    if verdict.missing:
        yield ""
        for part, reason in verdict.missing.items():
            yield f"  note: {reason}" if _is_qualified(verdict, part) else f"  not checked: {part}: {reason}"


def _next_step(verdict: Verdict) -> Iterator[str]:
    """What to look at if the job is likely to fail and no change is advised."""
    failure = verdict.failure
    if verdict.level not in ALARMS or verdict.advice or failure is None or not failure.will_fail:
        return
    failed = next((each.job for each in failure.similar if each.outcome in TARGETS[failure.target]), None)
    yield ""
    yield "  no change to the request is known that would lower the risk" + (
        f"; why a similar job failed: tocsin explain {failed}" if failed else ""
    )


def _is_qualified(verdict: Verdict, part: str) -> bool:
    """Whether the reason qualifies a prediction that was made, such as one without the user's earlier jobs."""
    return verdict.failure is not None and part.startswith("failure.")


def action_lines(actions: Sequence[Mapping[str, Any]], zone: tzinfo) -> Iterator[str]:
    """What was done to a job and is still in force, from the documents of its actions."""
    in_force = [each for each in actions if each["kind"] in _DONE and each["status"] == ActionStatus.DONE]
    for each in in_force:
        since, until = (at and clock(parse_instant(at, UTC), zone) for at in (each["done"], each["expires"]))
        most = f" until {until} at the latest" if until else ""
        yield ""
        yield f"  {_DONE[each['kind']]} by tocsin at {since}{most}: {printable(each['reason'])}"


def cause_lines(cause: Cause) -> Iterator[str]:
    """Why the job failed, and the line of output that shows it."""
    if cause.kind == UNKNOWN_CAUSE:
        yield "  cause of the failure: unknown; nothing known in its output names one"
        return
    yield f"  cause of the failure: {cause.title}"
    place = f"{cause.file}, line {cause.line}" if cause.line else f"{cause.file}, near its end"
    yield f"    {place}: {cause.text}" if cause.file else f"    by Slurm's record: {cause.text}"
    yield f"    {cause.advice}"


def _prediction(verdict: Verdict, texts: list[str]) -> Iterator[str]:
    """How likely it is to fail and why, similar jobs, what it needs, and which nodes to avoid."""
    failure = verdict.failure
    if failure:
        group = f"; profile: {failure.profile}" if failure.profile else ""
        yield ""
        alarm = f"alarm at {failure.threshold:.0%} or more" if failure.threshold <= 1 else "raises no alarms"
        yield f"  risk of failure {failure.probability:.0%} ({alarm}){group}"
        if failure.basis:
            yield f"    {failure.basis}"
        for reason in failure.contributions:
            points = f"{abs(reason.effect) * 100:.0f}" if abs(reason.effect) >= 0.005 else "less than 1"
            unit = "percentage points" if abs(reason.effect) >= 0.015 else "percentage point"
            verb = "raises" if reason.effect > 0 else "lowers"
            yield f"    {verb} the risk by {points} {unit}: {reason.text}"
        if failure.similar:
            yield f"    similar jobs: {', '.join(f'{s.job} {s.outcome}' for s in failure.similar[:3])}"
    yield from (f"    unusual: {anomaly.text}" for anomaly in verdict.anomalies)
    if verdict.resources:
        time, memory = verdict.resources.runtime_seconds, verdict.resources.memory_bytes
        if time:
            usual, longest = format_duration(time.p50), format_duration(time.p95)
            yield f"    expected run time {usual} (at most {longest} in 95% of cases)"
        if memory:
            used, most = (rounded_memory(size) for size in (memory.p50, memory.p95))
            yield f"    expected memory {used} (at most {most} in 95% of cases)"
    if verdict.nodes:
        yield from (
            f"    avoid {avoid.node}: {avoid.why}" for avoid in verdict.nodes.avoid if avoid.why not in texts
        )


def _classification(verdict: Verdict) -> Iterator[str]:
    """What the job is, by its script and by its execution, and whether it is allowed."""
    parts = verdict.workload
    execution = parts.execution if parts else None
    both = (("its script", parts.submission), ("what it did", execution)) if parts else ()
    screenings = [(by, screening) for by, screening in both if screening]
    if screenings:
        yield ""
    for by, screening in screenings:
        seen = sorted(((p, name) for name, p in screening.operations.items() if p >= SEEN_FROM), reverse=True)
        words = [", ".join(f"{name} ({p:.0%})" for p, name in seen) or _no_operation(screening)]
        labels = ("application", "domain", "language")
        words += [f"{label} {value}" for label in labels if (value := getattr(screening, label))]
        if len(words) == 1 and screening is not execution:
            words.append("no known application or language")
        yield f"  classified by {by}: {'; '.join(words)}"
        lines = ", ".join(dict.fromkeys(str(e.line) for e in screening.evidence[:8]))
        if lines and seen:
            yield f"    because of line{'s' if ',' in lines else ''} {lines}"
        if screening.own_programs:
            yield f"    runs programs that tocsin does not know: {', '.join(screening.own_programs)}"
    if verdict.rogue and verdict.rogue.operations:
        case = verdict.rogue.case
        dismissed = f"{case.text}; otherwise " if case and case.status is CaseStatus.DISMISSED else ""
        yield f"  {'rogue' if verdict.rogue.rogue else 'allowed'}: {dismissed}{verdict.rogue.rule}"


def _no_operation(screening: Screening) -> str:
    """An application of machine learning hints at AI: unless that is mentioned, the line would contradict itself."""
    p = screening.operations.get(_AI)
    if screening.domain == _AI_DOMAIN and p is not None:
        return f"{_AI} is possible ({p:.0%}), but below {SEEN_FROM:.0%}"
    return "no known operation"


def _is_rogue(verdict: Verdict) -> bool:
    return verdict.rogue is not None and verdict.rogue.rogue


def one_time(verdict: Verdict) -> list[Finding]:
    """Findings that no other verdict repeats, such as the hint of stolen credentials."""
    return [finding for finding in verdict.findings if finding.kind in _ONE_TIME]


def verdict_line(
    verdict: Verdict, zone: tzinfo, *, more: int = 0, size: int | None = None, update: bool = False
) -> str:
    """When, what is wrong, then the job, its stage and whose it is.

    `more`: how many other jobs the line is about; `size`: how many tasks a pending array has; `update`: the job has
    raised another alarm before.
    """
    shown = [finding.text for finding in verdict.findings if finding.level is verdict.level]
    shown += [finding.text for finding in one_time(verdict) if finding.text not in shown]
    shown = shown or [f"{part}: {reason}" for part, reason in verdict.missing.items()] or ["nothing found"]
    where = [verdict.job, str(verdict.stage)]
    whose = {"user": verdict.user, "account": verdict.account, "name": verdict.name}
    where += [f"{label} {value}" for label, value in whose.items() if value]
    if verdict.late:
        where.append("late")
    if update:
        where.append("after an earlier alarm")
    if size is not None:
        where.append(f"an array of {count(size, 'task')}")
    if more:
        where.append(f"and {more:,} more")
    level, text = verdict.level.upper(), "; ".join(shown)
    return f"{clock(verdict.at, zone)} {level}: {text} ({', '.join(where)})"
