"""Cases: which findings people are asked to look into, and which findings their answers silence."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tocsin.core.decision import KnownCase, NewCase
from tocsin.core.verdict import CaseReference, CaseStatus, Finding, Level
from tocsin.judge.policy import OPERATIONS, Policy, Rule

__all__ = ["Cases", "cause_of"]


def cause_of(finding: Finding, job: dict[str, Any], subject: str) -> str:
    """The same for the same cause, whichever job shows it: detector:kind:cluster:user:subject."""
    about = job[subject]
    about = ",".join(about) if isinstance(about, list) else about
    parts = (finding.detector, finding.kind, job["cluster"], job["user"], about)
    return ":".join("" if part is None else str(part) for part in parts)


@dataclass(slots=True)
class Cases:
    """Policy, and the cases known while a batch of jobs is judged."""

    policy: Policy
    known: dict[str, KnownCase]
    at: int
    open_new: bool
    opened: list[NewCase] = field(default_factory=list)

    def consider(
        self, findings: list[Finding], row: dict[str, Any], key: str, *, operations: list[str], by_sign: bool
    ) -> list[Finding]:
        """The findings, each with its case. An answered case silences its finding, unless policy keeps it."""
        job = {**row, OPERATIONS: sorted(operations)}
        return [self._with_case(finding, job, key, by_sign) for finding in findings]

    def _with_case(self, finding: Finding, job: dict[str, Any], key: str, by_sign: bool) -> Finding:
        rule = self.policy.rule_for(finding)
        if rule is None:
            return finding
        cause = cause_of(finding, job, rule.subject)
        if by_sign and rule.subject == OPERATIONS and job["script"]:
            case = self._of_sign(cause, job["script"])
            cause = f"{cause}:{job['script']}"
        else:
            case = self.known.get(cause)
        if case is None:
            if not self.open_new:
                return finding
            case = self._open(cause, job, key, finding)
        return replace(finding, level=_level(finding, case, rule), case=case.reference)

    def _open(self, cause: str, job: dict[str, Any], key: str, finding: Finding) -> KnownCase:
        document: dict[str, Any] = {
            "finding": {name: value for name, value in asdict(finding).items() if name != "case"},
            "user": job["user"],
            "account": job["account"],
        }
        if job[OPERATIONS]:  # keep what answers are about, for training
            document |= {"operations": job[OPERATIONS], "script": job["script"]}
        self.opened.append(NewCase(cause, key, self.at, document))
        script = document.get("script")
        case = self.known[cause] = KnownCase(CaseReference(cause=cause), script)
        return case

    def _of_sign(self, cause: str, script: str) -> KnownCase | None:
        """The case of a script with a sign: a dismissed one only for this very script, else an open or confirmed one.

        So dismissing a false alarm permits nothing else, and many scripts of one user are still one case.
        """
        plain = self.known.get(cause)
        signed = [case for name, case in self.known.items() if name == f"{cause}:{case.script}"]
        for case in [*signed, plain] if plain else signed:
            if case.status is CaseStatus.DISMISSED and case.script == script:
                return case
        if plain and plain.status is CaseStatus.CONFIRMED:
            return plain
        return next((case for case in signed if case.status is not CaseStatus.DISMISSED), None)


def _level(finding: Finding, case: KnownCase, rule: Rule) -> Level:
    raises_alarm = case.status is CaseStatus.OPEN or (
        case.status is CaseStatus.CONFIRMED and rule.alarm_if_confirmed
    )
    return finding.level if raises_alarm else Level.OK
