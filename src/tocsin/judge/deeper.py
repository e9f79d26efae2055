"""A deeper look at a job: its script screened again together with what it calls, as far as its submitter may read."""

import os.path
import pwd
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tocsin.core.errors import NotFound
from tocsin.core.verdict import SEEN_FROM, Evidence, Screening, Workload
from tocsin.scripts.text import readable
from tocsin.workload.permitted import Submitter, submitter
from tocsin.workload.reading import Bounds, Joined, Place, called, joined

__all__ = ["Deeper", "Look"]


class Look(NamedTuple):
    """What a job is with all that it calls, and which file said so."""

    workload: Workload
    evidence: list[tuple[str, str]]
    """Operations, each with a sentence that names the file and its line."""


class Deeper:
    """Reads what scripts call and screens both as one; an operation is as likely as the likelier look says."""

    def __init__(
        self, screen: Callable[[list[str]], Sequence[Screening]], bounds: Bounds | None = None
    ) -> None:
        self._screen = screen
        self._bounds = bounds or Bounds()

    def look(self, job: Mapping[str, Any], workload: Workload, script: str) -> Look | None:
        """None where nothing is called, or nothing can be read."""
        if workload.submission is None:
            return None
        who, folder = _submitter(job), _folder(job)
        if who is None or folder is None:
            return None
        whole = joined(script, called(script, folder=folder, who=who, bounds=self._bounds))
        if not whole.below:
            return None
        [deep] = self._screen([whole.text])
        return _merged(workload, workload.submission, deep, whole)


def _merged(workload: Workload, shallow: Screening, deep: Screening, whole: Joined) -> Look:
    operations = dict(shallow.operations)
    evidence = list(shallow.evidence)
    told: list[tuple[str, str]] = []
    for name, p in deep.operations.items():
        if p <= operations.get(name, 0.0):
            continue
        operations[name] = p
        for entry in deep.evidence:
            place = whole.place(entry.line)
            if entry.operation == name and place.file and p >= SEEN_FROM:
                evidence.append(Evidence(line=place.line, operation=name))
                told.append((name, _sentence(place, name)))
    screening = replace(
        shallow,
        operations=operations,
        evidence=list(dict.fromkeys(evidence)),
        application=shallow.application or deep.application,
        domain=shallow.domain or deep.domain,
        language=shallow.language or deep.language,
    )
    return Look(replace(workload, submission=screening), list(dict.fromkeys(told)))


def _sentence(place: Place, operation: str) -> str:
    which = "which" if place.inside is None else f"whose line {place.inside}"
    return readable(f"line {place.line} leads to {place.file}, {which} speaks for {operation}")


def _submitter(job: Mapping[str, Any]) -> Submitter | None:
    try:
        uid = job["uid"] if job["uid"] is not None else pwd.getpwnam(job["user"] or "").pw_uid
        return submitter(uid, job["gid"])
    except (KeyError, NotFound):
        return None


def _folder(job: Mapping[str, Any]) -> str | None:
    """Where the job runs: relative names are of there."""
    if job["work_dir"]:
        return str(job["work_dir"])
    command = job["command"] or ""
    return os.path.dirname(command) if command.startswith("/") else None  # noqa: PTH120  # text in, text out
