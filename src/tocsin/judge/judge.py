"""The judge: joins detectors' answers into one Verdict per job, with the allow-list, habits and cases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import polars as pl

from tocsin.core.actions import Mode
from tocsin.core.decision import Decision, Facts, FactsRequest, Screened
from tocsin.core.detector import Known, Parts
from tocsin.core.fields import FIELDS
from tocsin.core.frames import key_text
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.stages import Stage, reached_at
from tocsin.core.verdict import (
    SEEN_FROM,
    Advice,
    CaseStatus,
    Finding,
    Level,
    Rogue,
    Verdict,
    Workload,
    severity,
    worst,
)
from tocsin.judge.actions import HOUR, planned_actions
from tocsin.judge.allow import AllowList
from tocsin.judge.answers import Answer, DetectorModels, assess_and_explain
from tocsin.judge.cases import Cases
from tocsin.judge.habits import HABIT, LATELY, Habits
from tocsin.judge.past_verdict import explain_past_verdict
from tocsin.judge.permission import ROGUE, SUSPECTED, permission, permitted_as_ok, with_notes
from tocsin.judge.policy import NO_CASES, Policy

__all__ = ["Judge", "conclude", "facts_request"]

_SINGLE = ("failure", "workload", "resources", "nodes")  # a verdict has one of each
_WHOSE = ("user", "account", "name")
"""Fields of a job that its verdicts repeat, so that an alarm can be read on its own."""


@dataclass(slots=True)
class Judge:
    """Detectors and rules. It writes nothing: the caller stores the Decision as a whole."""

    detectors: Mapping[str, DetectorModels]
    policy: Policy = NO_CASES
    allow_list: Callable[[], AllowList] | None = None
    """The allow-list in force; None: permissions are not checked."""
    facts: Callable[[FactsRequest], Facts] = field(default=lambda _: Facts())
    """Reads what the store knows."""

    def decide(
        self,
        jobs: pl.DataFrame,
        stage: Stage,
        *,
        known: Known,
        at: int,
        seq: Sequence[int] | None = None,
        late: Sequence[bool] | None = None,
        known_until: Sequence[int] | None = None,
    ) -> Decision:
        """One verdict per job, in order, from what was known at the stage.

        `known_until`: up to when `known` had counted for each job; by default, up to the job's own moment.
        """
        answers = assess_and_explain(self.detectors, jobs, known, stage)
        return self.conclude(jobs, answers, stage, at=at, seq=seq, late=late, known_until=known_until)

    def conclude(
        self,
        jobs: pl.DataFrame,
        answers: Sequence[Sequence[Answer]],
        stage: Stage,
        *,
        at: int,
        seq: Sequence[int] | None = None,
        late: Sequence[bool] | None = None,
        known_until: Sequence[int] | None = None,
        other_screenings: Sequence[Screened] = (),
        open_cases: bool = True,
    ) -> Decision:
        """The decision on these jobs from answers and from what the store knows now.

        `beside` are the screenings of other jobs that are not stored yet. Without `open_cases`, it must not be stored.
        """
        request = facts_request(jobs, answers)
        if open_cases and request.cases and self.policy.actions.mode is not Mode.ADVISE:
            request = replace(request, actions_since=at - HOUR)
        facts = self.facts(request)
        return conclude(
            jobs,
            answers,
            stage=stage,
            at=at,
            seq=seq,
            late=late,
            known_until=known_until,
            facts=replace(facts, screened=[*other_screenings, *facts.screened])
            if other_screenings
            else facts,
            allowed=self.allow_list() if self.allow_list else None,
            policy=self.policy,
            open_cases=open_cases,
        )

    def explain(self, job: pl.DataFrame, stage: Stage, *, known: Known, at: int) -> Verdict:
        """The verdict on one job with contributions, similar jobs and advice. It opens no case.

        If the job already has a verdict, that one is explained, with what has changed since.
        """
        answers = assess_and_explain(self.detectors, job, known, stage, explain=True)
        facts = self.facts(facts_request(job, answers, verdicts=True))
        allowed = self.allow_list() if self.allow_list else None
        [today] = conclude(
            job,
            answers,
            stage=stage,
            at=at,
            facts=facts,
            allowed=allowed,
            policy=self.policy,
            open_cases=False,
        ).verdicts
        row = {**_rows(job, stage)[0], "submit": at}
        rule_today = (lambda name: allowed.ruling(name, row).rule) if allowed else None
        return explain_past_verdict(today, facts.verdicts, facts.cases, rule_today)

    def preview(self, job: pl.DataFrame, stage: Stage, *, known: Known, at: int) -> Verdict:
        """The verdict that `decide` would give on a job without one; only alarms are explained. It opens no case."""
        answers = assess_and_explain(self.detectors, job, known, stage)
        [verdict] = self.conclude(job, answers, stage, at=at, open_cases=False).verdicts
        return verdict


def facts_request(
    jobs: pl.DataFrame, answers: Sequence[Sequence[Answer]], *, verdicts: bool = False
) -> FactsRequest:
    """The stored facts that `conclude` needs for these answers."""
    numbers = [number for number, each in enumerate(answers) if _has_operation(each)]
    operating = [jobs.row(number, named=True) for number in numbers]
    submits = [job["submit"] for job in operating]
    keys = jobs.select(key_text()).to_series().to_list() if verdicts else []
    arrays = [str(key._replace(task=None)) for key in map(parse_key, keys) if key.task is not None]
    return FactsRequest(
        users=frozenset((job["cluster"], job["user"]) for job in operating if job["user"]),
        first=min(submits, default=0) - LATELY,
        last=max(submits, default=0),
        cases=verdicts
        or any(answer.parts.findings or answer.parts.workload for each in answers for answer in each),
        jobs=(*keys, *arrays),
    )


def _has_operation(answers: Sequence[Answer]) -> bool:
    workloads = [answer.parts.workload for answer in answers if answer.parts.workload]
    return any(p >= SEEN_FROM for workload in workloads for p in workload.operations.values())


def conclude(
    jobs: pl.DataFrame,
    answers: Sequence[Sequence[Answer]],
    *,
    stage: Stage,
    at: int,
    seq: Sequence[int] | None = None,
    late: Sequence[bool] | None = None,
    known_until: Sequence[int] | None = None,
    facts: Facts | None = None,
    allowed: AllowList | None = None,
    policy: Policy = NO_CASES,
    open_cases: bool = True,
) -> Decision:
    """The decision on these jobs from detectors' answers and stored facts alone; this does no I/O.

    Without `open_cases`, it must not be stored, and plans no action.
    """
    facts = facts or Facts()
    rows = _rows(jobs, stage)
    keys = [str(JobKey(row["cluster"], row["job_id"], row["task"], row["submit"])) for row in rows]
    drafts = [_Draft(each) for each in answers]
    screenings = [
        Screened(key, row["cluster"], row["user"] or "", row["submit"], workload.submission.operations)
        for key, row, draft in zip(keys, rows, drafts, strict=True)
        if allowed and (workload := draft.workload) and workload.submission
    ]
    habits = Habits(facts, screenings)
    cases = Cases(policy, dict(facts.cases), at, open_new=open_cases)
    for key, row, draft in zip(keys, rows, drafts, strict=True):
        if allowed and draft.workload:
            draft.check_permission(row, allowed)
            if stage is Stage.SUBMIT:
                draft.findings += habits.findings(row, key, draft.workload, draft.source["workload"])
        draft.findings = cases.consider(
            draft.findings, row, key, operations=draft.wrong, by_sign=draft.by_sign
        )
        draft.apply_case()
    verdicts = [
        draft.verdict(
            job=keys[number],
            stage=stage,
            seq=seq[number] if seq else 0,
            at=at,
            known_until=known_until[number] if known_until else _moment(rows[number], stage, at),
            late=late[number] if late else False,
            **{name: rows[number][name] for name in _WHOSE},
        )
        for number, draft in enumerate(drafts)
    ]
    actions = planned_actions(verdicts, rows, policy.actions, facts.actions) if open_cases else []
    return Decision(
        verdicts=verdicts, screenings=screenings, cases=cases.opened, hints=habits.found, actions=actions
    )


class _Draft:
    """A verdict in the making."""

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


def _rows(jobs: pl.DataFrame, stage: Stage) -> list[dict[str, Any]]:
    """The jobs as rows, without what becomes known only after the stage."""
    later = _later(stage)
    return [row | later for row in jobs.rows(named=True)]


@cache
def _later(stage: Stage) -> dict[str, None]:
    return {name: None for name, known in FIELDS.items() if not stage.knows(known.stage)}


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


def _moment(row: dict[str, Any], stage: Stage, at: int) -> int:
    instant = reached_at(stage, row["submit"], row["start"], row["end"])
    return at if instant is None else min(instant, at)
