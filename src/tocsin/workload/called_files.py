"""Screens scripts together with the files that they call, as far as the job's submitter may read them."""

import os.path
import pwd
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.detector import Fitted, Known, Parts
from tocsin.core.errors import NotFound
from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM, Evidence, Finding, Level, Screening
from tocsin.scripts.text import readable
from tocsin.sources.permitted import Submitter, submitter
from tocsin.workload.script_calls import Bounds, Joined, Place, called, joined

__all__ = ["CALLED", "FollowedFiles"]

CALLED = "called"
"""Kind of a finding about a file that the script calls."""
NAME = "workload"
_MOST_NOTES = 5


@dataclass(frozen=True, slots=True)
class FollowedFiles:
    """A fitted workload detector that screens scripts again with the files they call.

    The probability of an operation is the larger of both screenings.
    """

    fitted: Fitted
    screen: Callable[[list[str]], Sequence[Screening]]
    bounds: Bounds = Bounds()  # noqa: RUF009  # frozen

    def assess(self, jobs: pl.DataFrame, known: Known, *, stage: Stage) -> list[Parts]:
        answers = self.fitted.assess(jobs, known, stage=stage)
        return [
            self._followed(row, parts, known)
            for row, parts in zip(jobs.iter_rows(named=True), answers, strict=True)
        ]

    def explain(self, job: pl.DataFrame, known: Known, *, stage: Stage) -> Parts:
        parts = self.fitted.explain(job, known, stage=stage)
        return self._followed(job.row(0, named=True), parts, known)

    def save(self, folder: Path) -> None:
        self.fitted.save(folder)

    def _followed(self, job: Mapping[str, Any], parts: Parts, known: Known) -> Parts:
        """The same parts if nothing is called, or nothing can be read."""
        workload = parts.workload
        text = known.script(job["script"]) if job["script"] else None
        who, folder = _submitter(job), _folder(job)
        if text is None or workload is None or workload.submission is None or who is None or folder is None:
            return parts
        whole = joined(text, called(text, folder=folder, who=who, bounds=self.bounds))
        if not whole.below:
            return parts
        [deep] = self.screen([whole.text])
        screening, notes = _merged(workload.submission, deep, whole)
        return replace(
            parts, workload=replace(workload, submission=screening), findings=[*parts.findings, *notes]
        )


def _merged(shallow: Screening, deep: Screening, whole: Joined) -> tuple[Screening, list[Finding]]:
    """Both screenings as one, and a note for each line of a called file that is evidence of an operation."""
    operations = dict(shallow.operations)
    evidence = list(shallow.evidence)
    notes: list[Finding] = []
    for name, p in deep.operations.items():
        if p <= operations.get(name, 0.0):
            continue
        operations[name] = p
        for entry in deep.evidence:
            place = whole.place(entry.line)
            if entry.operation == name and place.file and p >= SEEN_FROM:
                evidence.append(Evidence(line=place.line, operation=name))
                note = Finding(
                    detector=NAME, kind=CALLED, level=Level.OK, text=_note(place, name), operation=name
                )
                if note not in notes:
                    notes.append(note)
    screening = replace(
        shallow,
        operations=operations,
        evidence=list(dict.fromkeys(evidence)),
        application=shallow.application or deep.application,
        domain=shallow.domain or deep.domain,
        language=shallow.language or deep.language,
        signs=list(dict.fromkeys([*shallow.signs, *deep.signs])),
    )
    return screening, notes[:_MOST_NOTES]


def _note(place: Place, operation: str) -> str:
    which = "which" if place.inside is None else f"whose line {place.inside}"
    return readable(f"line {place.line} leads to {place.file}, {which} speaks for {operation}")


def _submitter(job: Mapping[str, Any]) -> Submitter | None:
    try:
        uid = job["uid"] if job["uid"] is not None else pwd.getpwnam(job["user"] or "").pw_uid
        return submitter(uid, job["gid"])
    except (KeyError, NotFound):
        return None


def _folder(job: Mapping[str, Any]) -> str | None:
    """Where the job runs; relative names refer to it."""
    if job["work_dir"]:
        return str(job["work_dir"])
    command = job["command"] or ""
    return os.path.dirname(command) if command.startswith("/") else None  # noqa: PTH120  # text in, text out
