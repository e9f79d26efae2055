"""What each screened job is, as its script told, and what that makes of a user's past."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import jobs, key_text, screenings, verdicts

__all__ = ["Past", "Screened", "past_of", "remember", "said", "unscreened"]

_MOST_READ = 2000
"""Of a user's screened submissions, the newest: habits do not need more."""
_MOST_ROWS = 100_000
"""Screenings that these are looked for in: each task of an array may have one."""
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Screened:
    """A job's key as text, whose it is, when it was submitted, and {operation: probability}; none if it could not be read."""

    job: str
    cluster: str
    user: str
    submit: int
    operations: dict[str, float]


@dataclass(slots=True)
class Past:
    """When a user submitted what was screened, up to an instant, and when what was of each operation."""

    jobs: list[int] = field(default_factory=list)
    runs: dict[str, list[int]] = field(default_factory=dict)


def remember(store: Store, found: Iterable[Screened]) -> None:
    """Write screenings down; a job that was screened before keeps the first."""
    with store.writing() as connection:
        for one in found:
            row = {name: getattr(one, name) for name in ("job", "cluster", "user", "submit", "operations")}
            insert_new(connection, screenings, row)


def past_of(store: Store, cluster: str, user: str, *, until: int) -> Past:
    """What a user submitted, up to an instant and with it; the tasks of an array are one submission."""
    newest = (
        sa.select(screenings)
        .where(screenings.c.user == user, screenings.c.cluster == cluster, screenings.c.submit <= until)
        .order_by(screenings.c.submit.desc())
        .limit(_MOST_ROWS)
        .subquery()
    )
    what = sa.func.max(
        sa.cast(newest.c.operations, sa.Text)
    )  # of tasks the same, or {} where it could not be read
    query = (
        sa.select(newest.c.submit, what)
        .group_by(newest.c.submit, _without_task(newest.c.job))
        .order_by(newest.c.submit.desc())
        .limit(_MOST_READ)
    )
    past = Past()
    with store.reading() as connection:
        for submit, text in connection.execute(query):
            operations: dict[str, float] = json.loads(text)
            if operations:  # else it could not be read
                past.jobs.append(submit)
            for name, probability in operations.items():
                if probability >= SEEN_FROM:
                    past.runs.setdefault(name, []).append(submit)
    return past


def _without_task(job: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A key as text, the same for all tasks of an array: `lab:17_4@1794775393` as `lab:17_`, a plain job's as it is."""
    stem = sa.func.rtrim(sa.func.rtrim(sa.func.rtrim(job, _DIGITS), "@"), _DIGITS)
    return sa.case((stem.like("%!_", escape="!"), stem), else_=job)


def said(store: Store, *, since: int) -> dict[str, dict[str, float]]:
    """{operation: probability} of each job that was submitted from an instant on, by its key as text."""
    query = sa.select(screenings.c.job, screenings.c.operations).where(screenings.c.submit >= since)
    with store.reading() as connection:
        return {row.job: row.operations for row in connection.execute(query)}


def unscreened(store: Store, limit: int) -> list[dict[str, Any]]:
    """The keys of the oldest jobs that have a script and were not screened yet.

    A screening whose verdict was never stored does not count, for whoever made it was stopped in between; unless the
    script could not be read, which gives none.
    """
    judged = sa.exists().where(verdicts.c.job == screenings.c.job, verdicts.c.stage == str(Stage.SUBMIT))
    unread = sa.cast(screenings.c.operations, sa.Text) == "{}"
    known = sa.exists().where(screenings.c.job == key_text(), sa.or_(judged, unread))
    query = (
        sa.select(jobs.c.cluster, jobs.c.job_id, jobs.c.task, jobs.c.submit)
        .where(jobs.c.script.is_not(None), sa.not_(known))
        .order_by(jobs.c.submit, jobs.c.job_id, jobs.c.task)
        .limit(limit)
    )
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]
