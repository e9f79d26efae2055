"""Findings of the failure detector, and how a shortage changes its other parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.core.detector import Parts
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.units import format_duration, rounded_memory
from tocsin.core.verdict import Contribution, Failure, Finding, Level, Resources
from tocsin.failure.shortages import Shortage, shown_memory

__all__ = ["NAME", "SHORT_OF", "WILL_FAIL", "above_request", "failure_finding", "with_shortages"]

NAME = "failure"
WILL_FAIL = "will_fail"
"""The kind of a finding from the model's probability."""
SHORT_OF: Mapping[str, str] = {"req_memory": "short_of_memory", "time_limit": "short_of_time"}
"""The kinds of findings from earlier jobs that ran out, by the field of the request."""

FAR_ABOVE = 1.5
"""An expected need of this many times the request is a finding. (None of the 6,997 last jobs of KTH-SP2 has it; of
those whose expected run time merely exceeds the request, 48 of 59 completed.)"""
EVEN = 0.5
"""In back-tests of five public logs, 623 jobs had an expected run time far above their limit: of those with at least this
risk, 72 % did not complete, of the others 31 %."""


def failure_finding(failure: Failure) -> Finding:
    """For a job at or above the threshold."""
    cause = next(iter(failure.causes), Outcome.FAILED)
    likely = "" if cause == Outcome.FAILED else f"; most likely cause: {cause.replace('_', ' ')}"
    word = "fail" if failure.target is Target.FAILED else "be unsuccessful"
    return Finding(
        detector=NAME,
        kind=WILL_FAIL,
        level=Level.WARNING,
        text=f"the job is likely to {word} (risk {failure.probability:.0%}){likely}",
        score=failure.probability,
        threshold=failure.threshold,
        evidence=_increasing(failure.contributions),
    )


def above_request(resources: Resources | None) -> dict[str, str]:
    """The fields of a request far below the expected need, with a sentence each."""
    if resources is None:
        return {}
    time, memory = resources.runtime_seconds, resources.memory_bytes
    found = {}
    if time and time.requested and time.p50 >= FAR_ABOVE * time.requested:
        asked, need = format_duration(time.requested), format_duration(time.p50)
        found["time_limit"] = f"requests {asked}, but the expected run time is {need}"
    if memory and memory.requested and memory.p50 >= FAR_ABOVE * memory.requested:
        asked, need = shown_memory(memory.requested), rounded_memory(memory.p50)
        found["req_memory"] = f"requests {asked} of memory per node, but is expected to use {need}"
    return found


def with_shortages(parts: Parts, shortages: Mapping[str, Shortage]) -> Parts:
    """Add a finding for each certain shortage and for each expected need far above the request.

    A certain shortage raises an alarm however low the model's probability is; an expected need, only if failure is at
    least as likely as success.
    """
    texts = {**above_request(parts.resources), **{field: short.text for field, short in shortages.items()}}
    likely = parts.failure is None or parts.failure.probability >= EVEN
    findings = [
        Finding(
            detector=NAME,
            kind=SHORT_OF[field],
            level=Level.WARNING if field in shortages or likely else Level.OK,
            text=text,
        )
        for field, text in texts.items()
        if field not in shortages or shortages[field].certain
    ]
    if not texts:
        return parts
    resources, missing = parts.resources, parts.missing
    if "req_memory" in shortages and resources is not None and resources.memory_bytes is not None:
        # No similar job completed with so little memory, so none shows what it would need.
        resources = replace(resources, memory_bytes=None)
        missing = {**missing, "resources.memory_bytes": "similar jobs ran out of memory with this request"}
    return replace(parts, findings=[*parts.findings, *findings], resources=resources, missing=missing)


def _increasing(contributions: Sequence[Contribution]) -> list[str]:
    return [each.text for each in contributions if each.effect > 0]
