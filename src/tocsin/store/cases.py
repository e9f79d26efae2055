"""Cases that people look into, and their answers."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tocsin.core.decision import KnownCase, NewCase
from tocsin.core.errors import NotFound
from tocsin.core.fields import KEY
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.units import format_instant
from tocsin.core.verdict import CaseReference, CaseStatus, Verdict
from tocsin.store import audit
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import NO_TASK, cases, feedback, jobs, verdicts

__all__ = [
    "Answer",
    "Case",
    "answer",
    "any_open",
    "known_cases",
    "list_cases",
    "newest",
    "open_case",
    "others_open",
    "scripts_of",
    "show",
    "verdicts_of",
]

_AT_ONCE = 500
"""Jobs per query."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to a case."""

    at: int
    who: str
    answer: CaseStatus
    note: str


@dataclass(frozen=True, slots=True)
class Case:
    id: int
    cause: str
    job: JobKey
    opened: int
    status: CaseStatus
    document: dict[str, Any]
    answers: tuple[Answer, ...] = ()

    @property
    def group(self) -> str | None:
        """The same for the cases of several scripts of one user; None if the case is not about one script."""
        group = self.cause.removesuffix(f":{self.document.get('script')}")
        return None if group == self.cause else group

    def to_json(self) -> dict[str, Any]:
        return {
            "case": self.id,
            "status": str(self.status),
            "cause": self.cause,
            "job": str(self.job),
            "opened": format_instant(self.opened),
            **self.document,
            "answers": [
                {"at": format_instant(a.at), "who": a.who, "answer": str(a.answer), "note": a.note}
                for a in self.answers
            ],
        }


def open_case(connection: sa.Connection, new: NewCase) -> tuple[int, bool]:
    """The number of the case with this cause, and whether it is new: each cause has one case, open or answered."""
    row = {
        "cause": new.cause,
        "job": new.job,
        "opened": new.opened,
        "status": str(CaseStatus.OPEN),
        "document": new.document,
    }
    opened = insert_new(connection, cases, row)
    return connection.execute(sa.select(cases.c.id).where(cases.c.cause == new.cause)).scalar_one(), opened


def any_open(connection: sa.Connection, group: str) -> bool:
    """Whether a case of this group is open."""
    query = sa.select(cases.c.id).where(_in_group(group), cases.c.status == str(CaseStatus.OPEN))
    return connection.execute(query.limit(1)).first() is not None


def others_open(store: Store, case: Case) -> list[int]:
    """The other open cases of its group, the oldest first."""
    if case.group is None:
        return []
    query = sa.select(cases.c.id).where(
        _in_group(case.group), cases.c.status == str(CaseStatus.OPEN), cases.c.id != case.id
    )
    with store.reading() as connection:
        return list(connection.execute(query.order_by(cases.c.id)).scalars())


def _in_group(group: str) -> sa.ColumnElement[bool]:
    return cases.c.cause.startswith(f"{group}:", autoescape=True)


_LAST_ANSWERS = sa.select(sa.func.max(feedback.c.id)).group_by(feedback.c.case).scalar_subquery()
# Built once: it is needed for each verdict, and building it costs more than running it.
_WITH_LAST_ANSWER = (
    sa.select(cases, feedback.c.who, feedback.c.note)
    .select_from(
        cases.outerjoin(feedback, sa.and_(feedback.c.case == cases.c.id, feedback.c.id.in_(_LAST_ANSWERS)))
    )
    .order_by(cases.c.id)
)


def known_cases(connection: sa.Connection) -> dict[str, KnownCase]:
    """Every case with its last answer, by cause."""
    return {
        row.cause: KnownCase(
            CaseReference(
                cause=row.cause, number=row.id, status=CaseStatus(row.status), by=row.who, note=row.note or ""
            ),
            row.document.get("script"),
            row.job,
            tuple(row.document.get("operations", ())),
        )
        for row in connection.execute(_WITH_LAST_ANSWER)
    }


def list_cases(store: Store, status: CaseStatus | None = CaseStatus.OPEN) -> list[Case]:
    """Cases by age, without their answers; `None` lists all."""
    query = sa.select(cases).order_by(cases.c.id)
    with store.reading() as connection:
        rows = connection.execute(
            query if status is None else query.where(cases.c.status == str(status))
        ).all()
    return [_case(row) for row in rows]


def newest(store: Store, status: CaseStatus | None, *, before: int | None, limit: int) -> list[Case]:
    """Cases without their answers, newest first; with `before`, only those with a lower number."""
    query = sa.select(cases).order_by(cases.c.id.desc()).limit(limit)
    if status is not None:
        query = query.where(cases.c.status == str(status))
    if before is not None:
        query = query.where(cases.c.id < before)
    with store.reading() as connection:
        return [_case(row) for row in connection.execute(query).all()]


def show(store: Store, number: int) -> Case:
    """One case with all of its answers."""
    with store.reading() as connection:
        return _found(connection, number)


def verdicts_of(store: Store, case: Case) -> list[Verdict]:
    """The verdicts that belong to a case, oldest first."""
    number = verdicts.c.document["rogue"]["case"]["number"].as_integer()
    query = sa.select(verdicts.c.document).where(verdicts.c.at >= case.opened, number == case.id)
    with store.reading() as connection:
        found = connection.execute(query.order_by(verdicts.c.at, verdicts.c.id)).scalars()
        return [Verdict.from_json(document) for document in found]


def scripts_of(store: Store, keys: Collection[JobKey]) -> dict[JobKey, str]:
    """The scripts of these jobs, as far as they are known."""
    found: dict[JobKey, str] = {}
    with store.reading() as connection:
        for cluster in {key.cluster for key in keys}:
            numbers = sorted({key.job_id for key in keys if key.cluster == cluster})
            for ids in (numbers[at : at + _AT_ONCE] for at in range(0, len(numbers), _AT_ONCE)):
                query = sa.select(*(jobs.c[name] for name in KEY), jobs.c.script).where(
                    jobs.c.cluster == cluster, jobs.c.job_id.in_(ids), jobs.c.script.is_not(None)
                )
                found |= {JobKey(*key): script for *key, script in connection.execute(query)}
    stored = {key: key._replace(task=NO_TASK if key.task is None else key.task) for key in keys}
    return {key: found[row] for key, row in stored.items() if row in found}


def answer(store: Store, number: int, status: CaseStatus, *, who: str, at: int, note: str = "") -> Case:
    """Confirm or dismiss a case, or reopen it. Earlier answers are kept; the last one counts."""
    with store.writing() as connection:
        _found(connection, number)
        connection.execute(
            sa.insert(feedback).values(case=number, at=at, who=who, answer=str(status), note=note)
        )
        connection.execute(sa.update(cases).where(cases.c.id == number).values(status=str(status)))
        case = _found(connection, number)
        detail = {"case": number, "note": note}
        audit.write(
            connection, audit.Entry(at=at, who=who, what=f"case {status}", job=case.job, detail=detail)
        )
        return case


def _found(connection: sa.Connection, number: int) -> Case:
    row = connection.execute(sa.select(cases).where(cases.c.id == number)).first()
    if row is None:
        last = connection.execute(sa.select(sa.func.max(cases.c.id))).scalar()
        known = "there are none yet" if last is None else f"the last one is {last}"
        raise NotFound(f"no case {number} ({known}); list them with: tocsin cases list --all")
    answers = connection.execute(sa.select(feedback).where(feedback.c.case == number).order_by(feedback.c.id))
    return _case(row, tuple(Answer(a.at, a.who, CaseStatus(a.answer), a.note) for a in answers))


def _case(row: Any, answers: tuple[Answer, ...] = ()) -> Case:
    return Case(
        row.id, row.cause, parse_key(row.job), row.opened, CaseStatus(row.status), row.document, answers
    )
