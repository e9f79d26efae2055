"""People's answers to cases of rogue jobs, as examples to learn from."""

from pathlib import Path
from typing import NamedTuple

from tocsin.core.errors import NotFound
from tocsin.judge.rogue import DETECTOR, ROGUE
from tocsin.store.cases import Case, Status, list_cases
from tocsin.store.database import Store
from tocsin.store.scriptfiles import read_script

__all__ = ["Example", "answered", "examples"]


class Example(NamedTuple):
    """A script of which a person said that it is an operation, or that it is not."""

    text: str
    operation: str
    label: bool


def examples(store: Store, scripts: Path) -> tuple[list[Example], int]:
    """The examples that answered cases make, and how many cases have none because their script was not kept."""
    found: list[Example] = []
    lost = 0
    for case in _answered(store):
        try:
            text = read_script(scripts, case.document.get("script") or "")
        except NotFound:
            lost += 1
            continue
        label = case.status is Status.CONFIRMED
        found += [Example(text, name, label) for name in case.document["operations"]]
    return found, lost


def answered(store: Store) -> dict[str, dict[str, bool]]:
    """For each job with an answered case, by its key as text, whether it is the operation that was alarmed about."""
    return {
        str(case.job): dict.fromkeys(case.document["operations"], case.status is Status.CONFIRMED)
        for case in _answered(store)
    }


def _answered(store: Store) -> list[Case]:
    return [
        case
        for case in list_cases(store, None)
        if case.status is not Status.OPEN
        and case.cause.startswith(f"{DETECTOR}:{ROGUE}:")
        and case.document.get("operations")
    ]
