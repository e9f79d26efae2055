"""Rogue: whether a job may be what it is, by the allow-list."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant
from tocsin.core.verdict import SEEN_FROM, Finding, Level, Rogue, Screening, Workload
from tocsin.judge.allow import AllowBook, AllowList
from tocsin.judge.deeper import Deeper, Look
from tocsin.judge.hints import Hints, said_of
from tocsin.store import screenings
from tocsin.store.screenings import Screened
from tocsin.store.verdicts import StoredVerdict, of_job
from tocsin.workload.screening import SIGN_PROBABILITY

__all__ = [
    "CALLED",
    "DETECTOR",
    "ROGUE",
    "TODAY",
    "WITHOUT_CASE",
    "Opinion",
    "RogueBook",
    "rogue_of",
    "silenced",
]

DETECTOR = "workload"
ROGUE = "rogue"
CALLED = "called"
"""What a file that the script calls says, told though it may be so."""
TODAY = "today"
"""What is said today of a job that was judged otherwise when its verdict was given."""
WITHOUT_CASE = "without it: "
"""Stands before the rule that would count if a case had not been dismissed."""
_CASE = re.compile(r"case \d+ (?:is|was) ")
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is to be added to the verdict on a job; the workload with what a deeper look found."""

    workload: Workload | None = None
    rogue: Rogue | None = None
    findings: list[Finding] = field(default_factory=list)
    permitted: Mapping[str, str] = field(default_factory=dict)
    """Of the operations that were seen, those that it may be, each with the rule."""
    by_sign: bool = False
    """Whether it is rogue by a sign in its script, such as a pool's address, and not by a model's answer alone."""
    missing: str | None = None


class RogueBook:
    """Holds what jobs are against the allow-list, and remembers it."""

    def __init__(self, allow: AllowBook, deeper: Deeper | None = None) -> None:
        self.allow = allow
        self.deeper = deeper
        """Reads what scripts call, where the site wants that."""

    def consider(
        self,
        rows: Sequence[Mapping[str, Any]],
        workloads: Sequence[Workload | None],
        keys: Sequence[str],
        *,
        stage: Stage,
        script: Callable[[str], str | None],
        remember: bool,
    ) -> list[Opinion]:
        """One opinion a job, in order. With `remember` the screenings are kept, and habits are looked at."""
        if not any(workloads):
            return [Opinion() for _ in rows]
        looks = [self._look(row, workload, script) for row, workload in zip(rows, workloads, strict=True)]
        workloads = [look.workload if look else None for look in looks]
        fresh = [
            Screened(key, row["cluster"], row["user"] or "", row["submit"], workload.submission.operations)
            for row, workload, key in zip(rows, workloads, keys, strict=True)
            if workload and workload.submission
        ]
        if remember and fresh:
            screenings.remember(self.allow.store, fresh)
        allowed, hints = self.allow.current(), Hints(self.allow.store, rows)
        told = []
        for row, key, look in zip(rows, keys, looks, strict=True):
            if look is None:
                told.append(Opinion())
                continue
            opinion = rogue_of(look.workload, row, allowed)
            if not remember and (given := self._given(key, stage)):
                opinion = _as_given(opinion, given)
            findings = _with_files(opinion, look.evidence)
            if stage is Stage.SUBMIT:
                findings += hints.on(row, look.workload) if remember else said_of(self.allow.store, key)
            told.append(replace(opinion, findings=findings, missing=self.allow.trouble))
        return told

    def _given(self, key: str, stage: Stage) -> StoredVerdict | None:
        """The last stored verdict at this stage; at submission a task has that of its array."""
        job = parse_key(key)
        keys = [job, job._replace(task=None)] if stage is Stage.SUBMIT and job.task is not None else [job]
        for one in keys:
            found = [v for v in of_job(self.allow.store, one) if v.stage is stage and v.document.get("rogue")]
            if found:
                return max(found, key=lambda verdict: verdict.seq)
        return None

    def _look(
        self, row: Mapping[str, Any], workload: Workload | None, script: Callable[[str], str | None]
    ) -> Look | None:
        if workload is None:
            return None
        text = script(row["script"]) if self.deeper and row["script"] else None
        deep = self.deeper.look(row, workload, text) if self.deeper and text else None
        return deep or Look(workload, [])


def rogue_of(workload: Workload, job: Mapping[str, Any], allowed: AllowList) -> Opinion:
    """Whether the job may be what it is, with the deciding rule; and the finding if it may not."""
    probability = workload.operations
    seen = sorted((name for name, p in probability.items() if p >= SEEN_FROM), key=lambda n: -probability[n])
    rulings = {name: allowed.ruling(name, job) for name in seen}
    wrong = [name for name in seen if not rulings[name].allowed]
    deciding = wrong or seen
    rule = "; ".join(rulings[name].rule for name in deciding) or "no operation was seen that has a rule"
    rogue = Rogue(rogue=bool(wrong), operations=deciding, rule=rule, action="alarm" if wrong else "none")
    permitted = {name: rulings[name].rule for name in seen if rulings[name].allowed}
    if not wrong:
        return Opinion(workload, rogue, permitted=permitted)
    worst = wrong[0]
    text = f"this is {' and '.join(wrong)} ({probability[worst]:.0%}), and {rule}"
    evidence = _evidence(workload, wrong)
    finding = Finding(
        detector=DETECTOR,
        kind=ROGUE,
        level=Level.CRITICAL,
        text=text,
        score=probability[worst],
        threshold=SEEN_FROM,
        evidence=evidence,
    )
    by_script = workload.submission.operations if workload.submission else {}
    by_sign = any(by_script.get(name, 0.0) >= SIGN_PROBABILITY for name in wrong)
    return Opinion(workload, rogue, [finding], permitted, by_sign)


def _as_given(today: Opinion, given: StoredVerdict) -> Opinion:
    """The opinion of a verdict that was given, by the rules of its own time; and what is said today, if that differs."""
    rogue = Rogue(**given.document["rogue"])
    findings = [
        Finding(
            **{
                **finding,
                "level": Level(finding["level"]),
                # of its case is told how it stands today
                "evidence": [line for line in finding["evidence"] if not _CASE.match(line)],
            }
        )
        for finding in given.document["findings"]
        if (finding["detector"], finding["kind"]) == (DETECTOR, ROGUE)
    ]
    rule = rogue.rule.rpartition(WITHOUT_CASE)[2]
    if today.rogue and today.rogue.rule != rule:
        text = f"judged so at {format_instant(given.at)}; judged today: {today.rogue.rule}"
        findings.append(Finding(detector=DETECTOR, kind=TODAY, level=Level.OK, text=text))
    permitted = {} if rogue.rogue else dict.fromkeys(rogue.operations, rogue.rule)
    return replace(today, rogue=rogue, findings=findings, permitted=permitted)


def _with_files(opinion: Opinion, told: Sequence[tuple[str, str]]) -> list[Finding]:
    """The findings with what called files said for them; what files said of something that may run is told, too."""
    wrong = opinion.rogue.operations if opinion.rogue and opinion.rogue.rogue else []
    against = [sentence for name, sentence in told if name in wrong][:_MOST_LINES]
    rest = [sentence for name, sentence in told if name not in wrong][:_MOST_LINES]
    findings = [replace(each, evidence=[*each.evidence, *against]) for each in opinion.findings]
    return findings + [
        Finding(detector=DETECTOR, kind=CALLED, level=Level.OK, text=sentence) for sentence in rest
    ]


def silenced(findings: Sequence[Finding], why: Mapping[str, str]) -> list[Finding]:
    """The findings; what the detector warned of that may be, or was looked into, is still told and rings no more."""
    return [
        replace(finding, level=Level.OK, text=f"{finding.text} ({why[finding.kind]})")
        if finding.detector == DETECTOR and finding.kind in why
        else finding
        for finding in findings
    ]


def _evidence(workload: Workload, operations: Sequence[str]) -> list[str]:
    told = []
    for name in operations:
        lines = [str(e.line) for e in _lines(workload.submission) if e.operation == name and e.line > 0]
        if lines:
            told.append(f"line{'s' if len(lines) > 1 else ''} {', '.join(lines[:_MOST_LINES])} of its script")
        if workload.execution and name in workload.execution.operations:
            before = (workload.submission.operations if workload.submission else {}).get(name)
            was = "" if before is None else f"; by its script it was {before:.0%}"
            told.append(f"by what it did when it ran: {workload.execution.operations[name]:.0%}{was}")
    return told


def _lines(screening: Screening | None) -> list[Any]:
    return [] if screening is None else screening.evidence
