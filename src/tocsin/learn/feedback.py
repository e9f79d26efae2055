"""Answers to cases of rogue jobs, as training examples."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from tocsin.core.errors import NotFound
from tocsin.core.frames import key_text
from tocsin.core.verdict import CaseStatus
from tocsin.store.cases import Case, list_cases
from tocsin.store.database import Store
from tocsin.store.scriptfiles import read_script

__all__ = ["Example", "answered", "examples"]


class Example(NamedTuple):
    """A script that a person confirmed to be an operation, or not to be."""

    text: str
    operation: str
    label: bool


def examples(store: Store, scripts: Path) -> tuple[list[Example], int]:
    """The examples from answered cases, and the number of cases whose script was not kept."""
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
    """By job key: whether the job is the operation of an alarm that people answered.

    An answer is about the job of the case and about the same user's jobs with the same script.
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


def _answered(store: Store) -> list[Case]:
    return [
        case
        for case in list_cases(store, None)
        if case.status is not CaseStatus.OPEN and case.document.get("operations")
    ]
