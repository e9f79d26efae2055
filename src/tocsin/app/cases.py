"""`cases`: what people are asked to look into, and their answers."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.errors import NotFound
from tocsin.core.verdict import CaseStatus, Verdict
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.store.cases import Case

__all__ = ["CaseDetails", "answer_case", "list_cases", "page_of_cases", "show_case"]


def list_cases(app: App, *, everything: bool = False) -> "list[Case]":
    """Open cases, oldest first; with `everything`, answered ones as well."""
    from tocsin.store import cases

    return cases.list_cases(app.store, None if everything else CaseStatus.OPEN)


def page_of_cases(app: App, status: CaseStatus | None, *, before: int | None, size: int) -> "list[Case]":
    """The newest cases; with `before`, only those with a lower number."""
    from tocsin.store import cases

    return cases.newest(app.store, status, before=before, limit=size)


@dataclass(frozen=True, slots=True)
class CaseDetails:
    """A case with everything that belongs to it."""

    case: "Case"
    jobs: list[Verdict]
    """The last verdict on each of its jobs."""
    lines: dict[int, str]
    """The lines of the script that are evidence, by number."""
    no_lines: str
    """Why there are no lines."""

    def to_json(self) -> dict[str, Any]:
        of_job = ("job", "stage", "at", "level", "user", "account", "name")
        jobs = [verdict.to_json() for verdict in self.jobs]
        return {
            **self.case.to_json(),
            "jobs": [{name: job[name] for name in of_job} for job in jobs],
            "lines": [{"line": number, "text": text} for number, text in self.lines.items()],
        }


def show_case(app: App, number: int) -> CaseDetails:
    """One case with its jobs, the lines of its script and all answers."""
    from tocsin.store import cases

    return _details(app, cases.show(app.store, number))


def _details(app: App, case: "Case") -> CaseDetails:
    from tocsin.store import cases
    from tocsin.store.scriptfiles import read_script

    verdicts = cases.verdicts_of(app.store, case)
    jobs = list({verdict.job: verdict for verdict in verdicts}.values())
    digest, operations = case.document.get("script"), case.document.get("operations", ())
    if not digest:
        return CaseDetails(case, jobs, {}, "no script is known")
    first = next(
        (v for v in verdicts if v.job == str(case.job) and v.workload and v.workload.submission), None
    )
    evidence = (
        first.workload.submission.evidence if first and first.workload and first.workload.submission else []
    )
    numbers = sorted({each.line for each in evidence if each.line > 0 and each.operation in operations})
    try:
        text = read_script(app.home.scripts, digest).splitlines()
    except NotFound as error:
        return CaseDetails(case, jobs, {}, str(error))
    lines = {number: text[number - 1] for number in numbers if number <= len(text)}
    return CaseDetails(case, jobs, lines, "" if lines else f"no single line; the script is {digest}")


def answer_case(
    app: App, number: int, status: CaseStatus, note: str, *, who: str | None = None
) -> CaseDetails:
    """Answer a case, by default as the current user."""
    from tocsin.store import cases

    now = int(time.time())
    return _details(app, cases.answer(app.store, number, status, who=who or user_name(), at=now, note=note))
