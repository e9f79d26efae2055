"""`cases`: what people are asked to look into, and their answers."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import NotFound
from tocsin.core.ids import parse_key
from tocsin.core.verdict import CaseStatus, Verdict
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.store.cases import Case

__all__ = ["CaseDetails", "CaseScript", "answer_cases", "list_cases", "page_of_cases", "show_case"]


def list_cases(app: App, *, everything: bool = False) -> "list[Case]":
    """Open cases, oldest first; with `everything`, answered ones as well."""
    from tocsin.store import cases

    return cases.list_cases(app.store, None if everything else CaseStatus.OPEN)


def page_of_cases(app: App, status: CaseStatus | None, *, before: int | None, size: int) -> "list[Case]":
    """The newest cases; with `before`, only those with a lower number."""
    from tocsin.store import cases

    return cases.newest(app.store, status, before=before, limit=size)


@dataclass(frozen=True, slots=True)
class CaseScript:
    """A script of a case, and what it is accused of."""

    digest: str | None
    jobs: list[str]
    lines: dict[int, str]
    """The lines that are evidence, by number."""
    no_lines: str
    """Why there are no lines."""

    def to_json(self) -> dict[str, Any]:
        lines = [{"line": number, "text": text} for number, text in self.lines.items()]
        return {"script": self.digest, "jobs": self.jobs, "lines": lines, "no_lines": self.no_lines}


@dataclass(frozen=True, slots=True)
class CaseDetails:
    """A case with everything that belongs to it."""

    case: "Case"
    jobs: list[Verdict]
    """The last verdict on each of its jobs."""
    scripts: list[CaseScript]
    """The script that it was opened for comes first."""
    others: list[int]
    """Open cases of other scripts with the same accusation."""

    def to_json(self) -> dict[str, Any]:
        of_job = ("job", "stage", "at", "level", "user", "account", "name")
        jobs = [verdict.to_json() for verdict in self.jobs]
        scripts = [script.to_json() for script in self.scripts]
        return {
            **self.case.to_json(),
            "jobs": [{name: job[name] for name in of_job} for job in jobs],
            "lines": scripts[0]["lines"],
            "scripts": scripts,
            "other_cases": self.others,
        }


def show_case(app: App, number: int) -> CaseDetails:
    """One case with its jobs, the lines of its scripts and all answers."""
    from tocsin.store import cases

    return _details(app, cases.show(app.store, number))


def _details(app: App, case: "Case") -> CaseDetails:
    from tocsin.store import cases

    verdicts = cases.verdicts_of(app.store, case)
    keys = {verdict.job: parse_key(verdict.job) for verdict in verdicts}
    known = cases.scripts_of(app.store, keys.values())
    own: str | None = case.document.get("script")
    by_script: dict[str | None, list[Verdict]] = {own: []}
    for verdict in verdicts:
        key = keys[verdict.job]
        by_script.setdefault(own if key == case.job else known.get(key), []).append(verdict)
    operations = case.document.get("operations", ())
    return CaseDetails(
        case,
        list({verdict.job: verdict for verdict in verdicts}.values()),
        [_script(app, digest, few, operations) for digest, few in by_script.items()],
        cases.others_open(app.store, case),
    )


def _script(
    app: App, digest: str | None, verdicts: Sequence[Verdict], operations: Collection[str]
) -> CaseScript:
    """A script with the evidence in its first verdict."""
    from tocsin.store.scriptfiles import read_script

    jobs = list(dict.fromkeys(verdict.job for verdict in verdicts))
    if not digest:
        return CaseScript(digest, jobs, {}, "no script is known")
    screened = (v.workload.submission for v in verdicts if v.workload and v.workload.submission)
    first = next(screened, None)
    evidence = first.evidence if first else []
    numbers = sorted({each.line for each in evidence if each.line > 0 and each.operation in operations})
    try:
        text = read_script(app.home.scripts, digest).splitlines()
    except NotFound as error:
        return CaseScript(digest, jobs, {}, str(error))
    lines = {number: text[number - 1] for number in numbers if number <= len(text)}
    why = "no single line" if first else "the verdict that names its lines was pruned"
    return CaseScript(digest, jobs, lines, "" if lines else f"{why}; the script is {digest}")


def answer_cases(
    app: App, numbers: Sequence[int], status: CaseStatus, note: str, *, who: str | None = None
) -> list[CaseDetails]:
    """Answer cases, by default as the current user; an unknown number is an error before any is answered."""
    from tocsin.store import cases

    for number in numbers:
        cases.show(app.store, number)
    now, who = int(time.time()), who or user_name()
    return [
        _details(app, cases.answer(app.store, number, status, who=who, at=now, note=note))
        for number in dict.fromkeys(numbers)
    ]
