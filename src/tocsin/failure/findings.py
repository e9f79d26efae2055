"""Findings of the failure detector, and what a shortage changes in its other parts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.core.detector import Parts
from tocsin.core.outcomes import Outcome, Target
from tocsin.core.verdict import Contribution, Failure, Finding, Level
from tocsin.failure.shortages import Shortage

__all__ = ["NAME", "SHORT_OF", "WILL_FAIL", "failure_finding", "with_shortages"]

NAME = "failure"
WILL_FAIL = "will_fail"
"""The kind of a finding by the model's probability."""
SHORT_OF: Mapping[str, str] = {"req_memory": "short_of_memory", "time_limit": "short_of_time"}
"""The kinds of findings by earlier jobs that ran out, by the field of the request."""


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


def with_shortages(parts: Parts, shortages: Mapping[str, Shortage]) -> Parts:
    """Add a finding for each certain shortage: it alarms however low the model's probability is."""
    findings = [
        Finding(detector=NAME, kind=SHORT_OF[field], level=Level.WARNING, text=short.text)
        for field, short in shortages.items()
        if short.certain
    ]
    resources, missing = parts.resources, parts.missing
    if "req_memory" in shortages and resources is not None and resources.memory_bytes is not None:
        # No similar job completed with so little memory, so none shows what it would need.
        resources = replace(resources, memory_bytes=None)
        missing = {**missing, "resources.memory_bytes": "similar jobs ran out of memory with this request"}
    return replace(parts, findings=[*parts.findings, *findings], resources=resources, missing=missing)


def _increasing(contributions: Sequence[Contribution]) -> list[str]:
    return [each.text for each in contributions if each.effect > 0]
