"""The operations of screened jobs, according to their scripts."""

import json
from typing import Any

import sqlalchemy as sa

from tocsin.core.decision import Screened
from tocsin.core.fields import KEY
from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.store.database import Store
from tocsin.store.tables import NO_TASK, imports, jobs, key_text, screenings, verdicts

__all__ = ["number_unscreened", "operations_by_job", "submissions", "unscreened", "without_script"]

_MOST_READ = 2000
"""Newest submissions of a user; habits need no more."""
_MOST_ROWS = 100_000
"""Screenings searched for these: each task of an array may have one."""
_DIGITS = "0123456789"
_WATCHING = 600
"""Seconds: a watch that advanced this recently is running."""


def submissions(connection: sa.Connection, cluster: str, user: str, *, until: int) -> list[Screened]:
    """A user's screened submissions up to an instant; the tasks of an array are one."""
    newest = (
        sa.select(screenings)
        .where(screenings.c.user == user, screenings.c.cluster == cluster, screenings.c.submit <= until)
        .order_by(screenings.c.submit.desc())
        .limit(_MOST_ROWS)
        .subquery()
    )
    # Tasks have the same operations, or {} if the script could not be read.
    operations = sa.func.max(sa.cast(newest.c.operations, sa.Text))
    query = (
        sa.select(sa.func.max(newest.c.job), newest.c.submit, operations)
        .group_by(newest.c.submit, _without_task(newest.c.job))
        .order_by(newest.c.submit.desc())
        .limit(_MOST_READ)
    )
    return [
        Screened(job, cluster, user, submit, json.loads(text))
        for job, submit, text in connection.execute(query)
    ]


def _without_task(job: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
    """A key as text, the same for all tasks of an array: `lab:17_` for `lab:17_4@1794775393`; else the key itself."""
    stem = sa.func.rtrim(sa.func.rtrim(sa.func.rtrim(job, _DIGITS), "@"), _DIGITS)
    return sa.case((stem.like("%!_", escape="!"), stem), else_=job)


def operations_by_job(store: Store, *, since: int) -> dict[str, dict[str, float]]:
    """{operation: probability} of each job submitted at an instant or later, by its key."""
    query = sa.select(screenings.c.job, screenings.c.operations).where(screenings.c.submit >= since)
    with store.reading() as connection:
        return {row.job: row.operations for row in connection.execute(query)}


def unscreened(store: Store, limit: int, *, now: int) -> list[dict[str, Any]]:
    """The keys of the oldest jobs that have a script and were not screened yet."""
    columns = (jobs.c[name] for name in KEY)
    query = sa.select(*columns).where(_is_new(now)).order_by(jobs.c.submit, jobs.c.job_id, jobs.c.task)
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(query.limit(limit)).mappings()]


def number_unscreened(store: Store, *, now: int) -> int:
    """Their number."""
    with store.reading() as connection:
        query = sa.select(sa.func.count()).select_from(jobs).where(_is_new(now))
        return connection.execute(query).scalar_one()


def without_script(store: Store, cluster: str, *, since: int, limit: int) -> list[JobKey]:
    """The batch jobs, alive or ended since an instant, that have a verdict on their submission and were not screened.

    The newest come first. Tasks are left out: their array has the script.
    """
    here = sa.and_(
        jobs.c.cluster == cluster,
        jobs.c.task == NO_TASK,
        sa.or_(jobs.c.end.is_(None), jobs.c.end >= since),
        sa.func.coalesce(jobs.c.interactive, sa.false()).is_(sa.false()),
    )
    judged = sa.exists().where(verdicts.c.job == key_text(), verdicts.c.stage == str(Stage.SUBMIT))
    known = sa.exists().where(screenings.c.job == key_text())
    query = sa.select(jobs.c.job_id, jobs.c.submit).where(here, judged, sa.not_(known))
    with store.reading() as connection:
        rows = connection.execute(query.order_by(jobs.c.submit.desc()).limit(limit)).all()
    return [JobKey(cluster, row.job_id, None, row.submit) for row in rows]


def _is_new(now: int) -> sa.ColumnElement[bool]:
    """Without tasks, which inherit the verdict on their array, and jobs that a running watch will judge."""
    known = sa.exists().where(screenings.c.job == key_text())
    array = jobs.alias("array_of")
    inherits = sa.and_(
        jobs.c.task != NO_TASK,
        sa.exists().where(
            array.c.cluster == jobs.c.cluster,
            array.c.job_id == jobs.c.job_id,
            array.c.task == NO_TASK,
            array.c.submit <= jobs.c.submit,
        ),
    )
    judged = sa.exists().where(verdicts.c.job == key_text(), verdicts.c.stage == str(Stage.SUBMIT))
    watched = sa.exists().where(
        imports.c.identity == sa.literal("watch:").concat(jobs.c.cluster),
        imports.c.position >= now - _WATCHING,
        imports.c.started <= jobs.c.submit,
    )
    return sa.and_(
        jobs.c.script.is_not(None), sa.not_(known), sa.not_(inherits), sa.or_(judged, sa.not_(watched))
    )
