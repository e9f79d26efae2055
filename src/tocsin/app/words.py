"""A verdict in words, on one screen: what is wrong, what to change, what could not be said."""

from collections.abc import Iterator

from tocsin.core.units import format_duration, format_memory
from tocsin.core.verdict import SEEN_FROM, CaseStatus, Level, Screening, Verdict

__all__ = ["check_headline", "explain_headline", "in_words"]

AI = "ai"
AI_DOMAIN = "machine learning"
_BEFORE = {
    Level.OK: "no problem found",
    Level.WARNING: "check this before you submit it",
    Level.CRITICAL: "this job will not work as requested",
    Level.UNKNOWN: "no detector could check it",
}
_AFTERWARDS = {
    Level.OK: "no problem found",
    Level.WARNING: "there was reason for a warning",
    Level.CRITICAL: "it could not work as requested",
    Level.UNKNOWN: "no detector could check it",
}


def check_headline(verdict: Verdict) -> str:
    """Of a script that is not submitted yet."""
    return f"{'this job is not allowed to run here' if _is_rogue(verdict) else _BEFORE[verdict.level]}."


def explain_headline(verdict: Verdict, outcome: str | None) -> str:
    """Of a job of the past, and how it ended."""
    problem = "it was not allowed to run" if _is_rogue(verdict) else _AFTERWARDS[verdict.level]
    ended = f" Its outcome: {outcome.replace('_', ' ')}." if outcome else ""
    return f"{verdict.job} as known at {verdict.stage}: {problem}.{ended}"


def _is_rogue(verdict: Verdict) -> bool:
    return verdict.rogue is not None and verdict.rogue.rogue


def in_words(verdict: Verdict, headline: str) -> Iterator[str]:
    """One screen: what is wrong, what to change, what could not be said."""
    yield f"{verdict.level.upper()}: {headline}"
    said = [finding.text for finding in verdict.findings]
    for finding in verdict.findings:
        yield f"\n  {finding.level}: {finding.text}"
        yield from (f"    {line}" for line in finding.evidence if line not in finding.text)
        if finding.case:
            yield f"    {finding.case.text}"
    yield from _how_it_fares(verdict, said)
    yield from _what_it_is(verdict)
    for advice in verdict.advice:
        risks = advice.risk_before, advice.risk_after
        fall = (
            f", risk {risks[0]:.0%} -> {risks[1]:.0%}" if None not in risks and risks[0] != risks[1] else ""
        )
        yield f"\n  {advice.change}" + (f" ({advice.why}{fall})" if advice.why not in said else fall)
        if advice.edit:
            yield f"    @@ line {advice.edit.line} @@"
            if advice.edit.old is not None:
                yield f"    -{advice.edit.old}"
            yield f"    +{advice.edit.new}"
    if verdict.missing:
        yield ""
        for part, reason in verdict.missing.items():
            yield f"  not said: {part}: {reason}"


def _how_it_fares(verdict: Verdict, said: list[str]) -> Iterator[str]:
    """The parts failure, resources and nodes: how likely it fails and why, what it needs, what resembles it."""
    failure = verdict.failure
    if failure:
        group = f"; one of the {failure.profile}" if failure.profile else ""
        yield f"\n  risk of failure {failure.probability:.0%} (rings from {failure.threshold:.0%} on){group}"
        told = {line for finding in verdict.findings for line in finding.evidence}
        for reason in failure.contributions:
            if reason.text not in told:
                yield f"    {'raises' if reason.effect > 0 else 'lowers'} the risk: {reason.text}"
        if failure.similar:
            yield f"    jobs like it: {', '.join(f'{s.job} {s.outcome}' for s in failure.similar[:3])}"
    yield from (f"    unusual: {odd.text}" for odd in verdict.anomalies)
    if verdict.resources:
        time, memory = verdict.resources.runtime_seconds, verdict.resources.memory_bytes
        if time:
            yield f"    will run about {format_duration(time.p50)}, hardly more than {format_duration(time.p95)}"
        if memory:
            used, most = (format_memory(-(-size // 2**20) * 2**20) for size in (memory.p50, memory.p95))
            yield f"    will use about {used}, hardly more than {most}"
    if verdict.nodes:
        yield from (
            f"    avoid {avoid.node}: {avoid.why}" for avoid in verdict.nodes.avoid if avoid.why not in said
        )


def _what_it_is(verdict: Verdict) -> Iterator[str]:
    """The parts workload and rogue: what the job is, by its script and by what it did, and whether it may be that."""
    parts = verdict.workload
    looks = (("its script", parts.submission), ("what it did", parts.execution)) if parts else ()
    heard = [(by, look) for by, look in looks if look]
    if heard:
        yield ""
    for by, look in heard:
        seen = sorted(((p, name) for name, p in look.operations.items() if p >= SEEN_FROM), reverse=True)
        words = [", ".join(f"{name} ({p:.0%})" for p, name in seen) or _nothing_seen(look)]
        for label, value in (
            ("application", look.application),
            ("domain", look.domain),
            ("language", look.language),
        ):
            if value:
                words.append(f"{label} {value}")
        yield f"  by {by}: {'; '.join(words)}"
        lines = ", ".join(dict.fromkeys(str(e.line) for e in look.evidence[:8]))
        if lines and seen:
            yield f"    as line{'s' if ',' in lines else ''} {lines} tell{'' if ',' in lines else 's'}"
    if verdict.rogue and verdict.rogue.operations:
        case = verdict.rogue.case
        dismissed = f"{case.text}; otherwise " if case and case.status is CaseStatus.DISMISSED else ""
        yield f"  {'rogue' if verdict.rogue.rogue else 'it may'}: {dismissed}{verdict.rogue.rule}"


def _nothing_seen(look: Screening) -> str:
    """Where the application alone hints at AI, that is said: else its domain would speak against the sentence."""
    p = look.operations.get(AI)
    if look.domain == AI_DOMAIN and p is not None:
        return f"{AI} is possible ({p:.0%}), too little to count as seen"
    return "none of the operations that are looked for"
