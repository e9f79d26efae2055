"""`cases`: what people are asked to look into, and their answers."""

import time
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.verdict import CaseStatus
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.store.cases import Case

__all__ = ["answer_case", "list_cases", "show_case"]


def list_cases(app: App, *, everything: bool = False) -> "list[Case]":
    """Open cases, the oldest first; with `everything`, answered ones as well."""
    from tocsin.store import cases

    return cases.list_cases(app.store, None if everything else CaseStatus.OPEN)


def show_case(app: App, number: int) -> "Case":
    """One case with all answers."""
    from tocsin.store import cases

    return cases.show(app.store, number)


def answer_case(app: App, number: int, status: CaseStatus, note: str) -> "Case":
    """Answer a case as the user of this process."""
    from tocsin.store import cases

    who, now = user_name(), int(time.time())
    return cases.answer(app.store, number, status, who=who, at=now, note=note)
