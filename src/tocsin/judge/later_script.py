"""Repeats a verdict with the findings of a script that was read only later."""

from dataclasses import replace

from tocsin.core.verdict import Level, Verdict, severity, worst

__all__ = ["repeated_with_script"]


def repeated_with_script(given: Verdict, screened: Verdict) -> Verdict | None:
    """The last verdict with what the script adds; None if it adds no finding, or was already classified.

    A job's verdict is never contradicted.
    """
    if (given.workload and given.workload.submission) or all(
        finding.level is Level.OK for finding in screened.findings
    ):
        return None
    return replace(
        given,
        seq=given.seq + 1,
        at=screened.at,
        level=worst([given.level, screened.level]),
        findings=sorted([*given.findings, *screened.findings], key=lambda finding: -severity(finding.level)),
        workload=screened.workload,
        rogue=screened.rogue,
        models=given.models | screened.models,
        missing={part: why for part, why in given.missing.items() if part not in screened.models},
    )
