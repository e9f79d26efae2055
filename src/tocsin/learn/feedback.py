"""Answers to cases of rogue jobs, as training examples."""

from pathlib import Path
from typing import NamedTuple

from tocsin.core.errors import NotFound
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


def answered(store: Store) -> dict[str, dict[str, bool]]:
    """For each job with an answered case, by its key: whether it is the operation of the alarm."""
    return {
        str(case.job): dict.fromkeys(case.document["operations"], case.status is CaseStatus.CONFIRMED)
        for case in _answered(store)
    }


def _answered(store: Store) -> list[Case]:
    return [
        case
        for case in list_cases(store, None)
        if case.status is not CaseStatus.OPEN and case.document.get("operations")
    ]
