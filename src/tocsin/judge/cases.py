"""Cases: what people are asked to look into, and what their answers silence."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from tocsin.core.ids import JobKey
from tocsin.core.units import format_instant
from tocsin.core.verdict import Finding, Level
from tocsin.judge.policy import OPERATIONS, Policy, Rule
from tocsin.store import audit
from tocsin.store import cases as kept
from tocsin.store.cases import Case, Status
from tocsin.store.database import Store

__all__ = ["CaseBook", "Considered", "Heard", "answer", "cause_of", "to_json"]


@dataclass(frozen=True, slots=True)
class Heard:
    """A job's row, as it was at submission, and what was found on it."""

    job: dict[str, Any]
    findings: Sequence[Finding]
    operations: Sequence[str] = ()
    """What it is, where that is against the rules."""
    by_sign: bool = False
    """Whether a sign in its script says so, and not a model's answer alone."""


class Considered(NamedTuple):
    """The findings of a job as they are told, and the case of each that has one."""

    findings: list[Finding]
    cases: list[Case | None]


def cause_of(finding: Finding, job: dict[str, Any], subject: str) -> str:
    """The same text for the same cause, whichever job shows it: detector:kind:cluster:user:subject."""
    about = job[subject]
    about = ",".join(about) if isinstance(about, list) else about
    return ":".join(
        (
            finding.detector,
            finding.kind,
            job["cluster"],
            job["user"] or "",
            "" if about is None else str(about),
        )
    )


class CaseBook:
    """Holds findings against policy and against the cases that the store knows."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self.store = store
        self.policy = policy

    def consider(self, heard: Sequence[Heard], *, at: int, open_new: bool) -> list[Considered]:
        """The findings of each job, in order: those whose case was answered are silent and name it.

        With `open_new`, a cause that has no case gets one. To do so again changes nothing.
        """
        if not self.policy.rules or not any(one.findings for one in heard):
            return [Considered(list(one.findings), [None] * len(one.findings)) for one in heard]
        known: dict[str, Case] | None = None
        told: list[Considered] = []
        for one in heard:
            findings = list(one.findings)
            cases: list[Case | None] = [None] * len(findings)
            job = {**one.job, OPERATIONS: sorted(one.operations)}
            for number, finding in enumerate(findings):
                rule = self.policy.rule_for(finding)
                if rule is None:
                    continue
                if known is None:
                    known = {case.cause: case for case in kept.list_cases(self.store, None)}
                cause = cause_of(finding, job, rule.subject)
                if one.by_sign and rule.subject == OPERATIONS and job["script"]:
                    case = _signed(known, cause, job["script"])
                    cause = f"{cause}:{job['script']}"
                else:
                    case = known.get(cause)
                if case is None and open_new:
                    case = self._open(cause, job, finding, at)
                    known[cause] = case
                if case is not None:
                    findings[number], cases[number] = self._told(finding, case, rule), case
            told.append(Considered(findings, cases))
        return told

    def _open(self, cause: str, job: dict[str, Any], finding: Finding, at: int) -> Case:
        key = JobKey(job["cluster"], job["job_id"], job["task"], job["submit"])
        document = {
            "finding": {**asdict(finding), "level": str(finding.level)},
            "user": job["user"],
            "account": job["account"],
        }
        if job[OPERATIONS]:  # what people answer is learned from: keep what it was said of
            document |= {"operations": job[OPERATIONS], "script": job["script"]}
        opened = kept.open_case(self.store, cause=cause, job=key, at=at, document=document)
        if opened is not None:
            return opened
        # Another process was faster.
        return next(case for case in kept.list_cases(self.store, None) if case.cause == cause)

    def _told(self, finding: Finding, case: Case, rule: Rule) -> Finding:
        if case.status is Status.OPEN:
            return replace(finding, evidence=[*finding.evidence, f"case {case.id} is open"])
        last = kept.show(self.store, case.id).answers[-1]
        note = f": {last.note}" if last.note else ""
        if case.status is Status.CONFIRMED and rule.confirmed_rings:
            said = f"case {case.id} was confirmed by {last.who}{note}"
            return replace(finding, evidence=[*finding.evidence, said])
        return replace(
            finding,
            level=Level.OK,
            text=f"{finding.text} (case {case.id} was {case.status} by {last.who}{note})",
        )


def _signed(known: dict[str, Case], cause: str, script: str) -> Case | None:
    """The case of a job whose script bears a sign: a dismissed one only of this very script, else any that stands.

    So a false alarm that was dismissed is no licence, and many scripts of one user are still one case to look into.
    """
    plain = known.get(cause)
    signed = [case for name, case in known.items() if name.startswith(f"{cause}:")]
    for case in [*signed, plain] if plain else signed:
        if case.status is Status.DISMISSED and case.document.get("script") == script:
            return case
    if plain and plain.status is Status.CONFIRMED:
        return plain
    return next((case for case in signed if case.status is not Status.DISMISSED), None)


def answer(store: Store, number: int, status: Status, *, who: str, at: int, note: str = "") -> Case:
    """Confirm or dismiss a case, and write down who did."""
    case = kept.answer(store, number, status, who=who, at=at, note=note)
    detail = {"case": number, "note": note}
    audit.append(store, audit.Entry(at=at, who=who, what=f"case {status}", job=case.job, detail=detail))
    return case


def to_json(case: Case) -> dict[str, Any]:
    """A case as JSON has it."""
    return {
        "case": case.id,
        "status": str(case.status),
        "cause": case.cause,
        "job": str(case.job),
        "opened": format_instant(case.opened),
        **case.document,
        "answers": [
            {"at": format_instant(a.at), "who": a.who, "answer": str(a.answer), "note": a.note}
            for a in case.answers
        ],
    }
