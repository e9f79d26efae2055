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
        group = None
        if by_sign and rule.subject == OPERATIONS and job["script"]:
            case = self._of_sign(cause, job["script"])
            group, cause = cause, f"{cause}:{job['script']}"
        else:
            case = self.known.get(cause)
        if case is None:
            if not self.open_new:
                return finding
            case = self._open(cause, job, key, finding, group)
        return replace(finding, level=_level(finding, case, rule), case=case.reference)

    def _open(
        self, cause: str, job: dict[str, Any], key: str, finding: Finding, group: str | None
    ) -> KnownCase:
        document: dict[str, Any] = {
            "finding": {name: value for name, value in asdict(finding).items() if name != "case"},
            "user": job["user"],
            "account": job["account"],
        }
        if job[OPERATIONS]:  # keep what answers are about, for training
            document |= {"operations": job[OPERATIONS], "script": job["script"]}
        self.opened.append(NewCase(cause, key, self.at, document, group))
        script = document.get("script")
        case = self.known[cause] = KnownCase(CaseReference(cause=cause), script)
        return case

    def _of_sign(self, cause: str, script: str) -> KnownCase | None:
        """The case of a script with a sign: its own, so that an answer applies to what was shown and to nothing else.

        An answer to a model's alarm on this very script counts, too. Once a case of the user is confirmed, further
        scripts belong to it; their cause stays their own, so that no change of that answer permits them.
        """
        plain, own = self.known.get(cause), f"{cause}:{script}"
        if plain and plain.status is CaseStatus.DISMISSED and plain.script == script:
            return plain
        if own in self.known:
            return self.known[own]
        alike = [case for name, case in self.known.items() if name in (cause, f"{cause}:{case.script}")]
        confirmed = next((case for case in alike if case.status is CaseStatus.CONFIRMED), None)
        return confirmed and replace(confirmed, reference=replace(confirmed.reference, cause=own))


def _level(finding: Finding, case: KnownCase, rule: Rule) -> Level:
    raises_alarm = case.status is CaseStatus.OPEN or (
        case.status is CaseStatus.CONFIRMED and rule.alarm_if_confirmed
    )
    return finding.level if raises_alarm else Level.OK
