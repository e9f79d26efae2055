"""Cases that people look into, and their answers."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa

from tocsin.core.errors import NotFound
from tocsin.core.ids import JobKey, parse_key
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import cases, feedback

__all__ = ["Answer", "Case", "Status", "answer", "list_cases", "open_case", "show"]


class Status(StrEnum):
    OPEN = "open"
    CONFIRMED = "confirmed"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody said of a case."""

    at: int
    who: str
    answer: Status
    note: str


@dataclass(frozen=True, slots=True)
class Case:
    id: int
    cause: str
    job: JobKey
    opened: int
    status: Status
    document: dict[str, Any]
    answers: tuple[Answer, ...] = ()


def open_case(store: Store, *, cause: str, job: JobKey, at: int, document: dict[str, Any]) -> Case | None:
    """A new case; None when this cause has one already, open or answered: the same cause never rings twice."""
    row = {"cause": cause, "job": str(job), "opened": at, "status": str(Status.OPEN), "document": document}
    with store.writing() as connection:
        if not insert_new(connection, cases, row):
            return None
        return _case(connection.execute(sa.select(cases).where(cases.c.cause == cause)).one())


def list_cases(store: Store, status: Status | None = Status.OPEN) -> list[Case]:
    """Cases by age, without their answers; `None` for all."""
    query = sa.select(cases).order_by(cases.c.id)
    with store.reading() as connection:
        rows = connection.execute(
            query if status is None else query.where(cases.c.status == str(status))
        ).all()
    return [_case(row) for row in rows]


def show(store: Store, number: int) -> Case:
    """One case with all of its answers."""
    with store.reading() as connection:
        return _found(connection, number)


def answer(store: Store, number: int, status: Status, *, who: str, at: int, note: str = "") -> Case:
    """Confirm or dismiss a case, or open it again. Earlier answers are kept; the last one counts."""
    with store.writing() as connection:
        _found(connection, number)
        connection.execute(
            sa.insert(feedback).values(case=number, at=at, who=who, answer=str(status), note=note)
        )
        connection.execute(sa.update(cases).where(cases.c.id == number).values(status=str(status)))
        return _found(connection, number)


def _found(connection: sa.Connection, number: int) -> Case:
    row = connection.execute(sa.select(cases).where(cases.c.id == number)).first()
    if row is None:
        last = connection.execute(sa.select(sa.func.max(cases.c.id))).scalar()
        known = "there are none yet" if last is None else f"the last one is {last}"
        raise NotFound(f"no case {number} ({known}); list all of them with: tocsin cases")
    answers = connection.execute(sa.select(feedback).where(feedback.c.case == number).order_by(feedback.c.id))
    return _case(row, tuple(Answer(a.at, a.who, Status(a.answer), a.note) for a in answers))


def _case(row: Any, answers: tuple[Answer, ...] = ()) -> Case:
    return Case(row.id, row.cause, parse_key(row.job), row.opened, Status(row.status), row.document, answers)
