"""People's answers as labels for training: how jobs end, and which jobs are which operation."""

from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from tocsin.core.errors import NotFound
from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.verdict import CaseStatus
from tocsin.store.answers import answers
from tocsin.store.cases import Case, list_cases
from tocsin.store.database import Store
from tocsin.store.scriptfiles import read_script

__all__ = ["Example", "answered", "examples", "with_answers"]


class Example(NamedTuple):
    """A script that a person confirmed to be an operation, or not to be."""

    text: str
    operation: str
    label: bool


def examples(store: Store, scripts: Path) -> tuple[list[Example], int]:
    """The examples from answered cases, and the number of cases whose script is not stored."""
    found: list[Example] = []
    lost = 0
    for case in _answered(store):
        try:
            text = read_script(scripts, case.document.get("script") or "")
        except NotFound:
            lost += 1
            continue
        label = case.status is CaseStatus.CONFIRMED
        found += [Example(text, name, label) for name in case.document["operations"]]
    return found, lost


def answered(store: Store, jobs: pl.DataFrame) -> dict[str, dict[str, bool]]:
    """For each job key, whether the job is the operation of an alarm that people answered.

    An answer applies to the job of the case and to the same user's jobs with the same script.
    """
    keys: dict[tuple[str | None, ...], list[str]] = {}
    known = jobs.filter(pl.col("user").is_not_null(), pl.col("script").is_not_null())
    for key, *owner in known.select(key_text(), "cluster", "user", "script").iter_rows():
        keys.setdefault(tuple(owner), []).append(key)
    found: dict[str, dict[str, bool]] = {}
    for case in _answered(store):
        flags = dict.fromkeys(case.document["operations"], case.status is CaseStatus.CONFIRMED)
        whose = (case.job.cluster, case.document.get("user"), case.document.get("script"))
        for key in (str(case.job), *keys.get(whose, ())):
            found.setdefault(key, {}).update(flags)
    return found


def with_answers(store: Store, jobs: pl.DataFrame) -> pl.DataFrame:
    """The jobs with the answered outcomes, known since the answer."""
    given = [(job, str(outcome), at) for job, (outcome, at) in answers(store).items()]
    if not given:
        return jobs
    schema: dict[str, Any] = {"job": pl.String, "answer": SCHEMA["outcome"], "answered": SCHEMA["known_at"]}
    found = pl.DataFrame(given, schema=schema, orient="row")
    return (
        jobs.with_columns(key_text())
        .join(found, on="job", how="left", maintain_order="left")
        .with_columns(outcome=pl.coalesce("answer", "outcome"), known_at=pl.coalesce("answered", "known_at"))
        .select(jobs.columns)
    )


def _answered(store: Store) -> list[Case]:
    return [
        case
        for case in list_cases(store, None)
        if case.status is not CaseStatus.OPEN and case.document.get("operations")
    ]
