"""Rogue: whether a job may be what it is, by the allow-list; and whether its user suddenly changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tocsin.core.errors import SettingsError
from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM, Finding, Level, Rogue, Screening, Workload
from tocsin.judge.allow import AllowBook, AllowList
from tocsin.judge.deeper import Deeper, Look
from tocsin.store import screenings
from tocsin.store.allow import Default
from tocsin.store.screenings import Screened
from tocsin.workload.habits import habit

__all__ = ["DETECTOR", "HABIT", "ROGUE", "Opinion", "RogueBook", "latest", "rogue_of"]

DETECTOR = "workload"
ROGUE = "rogue"
HABIT = "habit"
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class Opinion:
    """What is to be added to the verdict on a job; the workload with what a deeper look found."""

    workload: Workload | None = None
    rogue: Rogue | None = None
    findings: list[Finding] = field(default_factory=list)
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
        try:
            allowed = self.allow.current()
        except SettingsError as error:
            return [Opinion(w, missing=str(error) if w else None) for w in workloads]
        told = []
        for row, look in zip(rows, looks, strict=True):
            if look is None:
                told.append(Opinion())
                continue
            workload = look.workload
            rogue, finding = rogue_of(workload, row, allowed)
            findings = [replace(finding, evidence=[*finding.evidence, *look.evidence])] if finding else []
            if remember and stage is Stage.SUBMIT and row["user"]:
                findings += self._habits(row, workload, allowed)
            told.append(Opinion(workload, rogue, findings))
        return told

    def _look(
        self, row: Mapping[str, Any], workload: Workload | None, script: Callable[[str], str | None]
    ) -> Look | None:
        if workload is None:
            return None
        text = script(row["script"]) if self.deeper and row["script"] else None
        deep = self.deeper.look(row, workload, text) if self.deeper and text else None
        return deep or Look(workload, [])

    def _habits(self, row: Mapping[str, Any], workload: Workload, allowed: AllowList) -> list[Finding]:
        seen = [name for name, p in latest(workload).items() if p >= SEEN_FROM]
        if not seen:
            return []
        user, at = row["user"], row["submit"]
        past = screenings.past_of(self.allow.store, row["cluster"], user, until=at)
        found = []
        for name in seen:
            sentence = habit(user, name, jobs=past.jobs, runs=past.runs.get(name, []), at=at)
            if sentence:
                harmless = allowed.default(name) is Default.ALLOWED
                level = Level.OK if harmless else Level.WARNING
                found.append(Finding(detector=DETECTOR, kind=HABIT, level=level, text=sentence))
        return found


def rogue_of(workload: Workload, job: Mapping[str, Any], allowed: AllowList) -> tuple[Rogue, Finding | None]:
    """Whether the job may be what it is, with the deciding rule; and the finding if it may not."""
    probability = latest(workload)
    seen = sorted((name for name, p in probability.items() if p >= SEEN_FROM), key=lambda n: -probability[n])
    rulings = {name: allowed.ruling(name, job) for name in seen}
    wrong = [name for name in seen if not rulings[name].allowed]
    deciding = wrong or seen
    rule = "; ".join(rulings[name].rule for name in deciding) or "no operation was seen that has a rule"
    rogue = Rogue(rogue=bool(wrong), operations=deciding, rule=rule, action="alarm" if wrong else "none")
    if not wrong:
        return rogue, None
    worst = wrong[0]
    text = f"this is {' and '.join(wrong)} ({probability[worst]:.0%}), and {rule}"
    evidence = _evidence(workload, wrong)
    score = probability[worst]
    return rogue, Finding(
        detector=DETECTOR,
        kind=ROGUE,
        level=Level.CRITICAL,
        text=text,
        score=score,
        threshold=SEEN_FROM,
        evidence=evidence,
    )


def latest(workload: Workload) -> dict[str, float]:
    """The operations of a job: what it did when it ran corrects what its script said."""
    answers = (workload.submission, workload.execution)
    return {name: p for answer in answers if answer for name, p in answer.operations.items()}


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
