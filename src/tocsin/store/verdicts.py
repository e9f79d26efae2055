"""Verdicts, each stored once."""

from collections.abc import Iterable
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.ids import JobKey
from tocsin.core.stages import Stage
from tocsin.core.verdict import ALARMS, Verdict
from tocsin.store import bulk
from tocsin.store.database import Store
from tocsin.store.tables import verdicts

__all__ = ["alarms", "at_stage", "last_at_stage", "next_seq", "of_job", "of_jobs", "read", "row"]


def row(verdict: Verdict) -> dict[str, Any]:
    return {
        "job": verdict.job,
        "stage": str(verdict.stage),
        "seq": verdict.seq,
        "at": verdict.at,
        "level": str(verdict.level),
        "late": verdict.late,
        "document": verdict.to_json(),
    }


def read(connection: sa.Connection, job: str) -> list[Verdict]:
    query = sa.select(verdicts.c.document).where(verdicts.c.job == job).order_by(verdicts.c.at, verdicts.c.id)
    return [Verdict.from_json(document) for document in connection.execute(query).scalars()]


def of_job(store: Store, job: JobKey) -> list[Verdict]:
    """All verdicts on a job, in the order in which they were given."""
    with store.reading() as connection:
        return read(connection, str(job))


def of_jobs(
    store: Store, jobs: Iterable[str], *conditions: sa.ColumnElement[bool]
) -> dict[str, list[Verdict]]:
    """By job, its verdicts in the order in which they were given, if any: by one query, for arrays of many tasks."""
    found: dict[str, list[Verdict]] = {}
    wanted = pl.DataFrame({"job": list(jobs)}, schema={"job": pl.String}).unique()
    if wanted.height:
        with store.reading() as connection:
            staged = bulk.stage(connection, verdicts, wanted)
            query = (
                sa.select(verdicts.c.job, verdicts.c.document)
                .join_from(staged, verdicts, staged.c.job == verdicts.c.job)
                .where(*conditions)
                .order_by(verdicts.c.at, verdicts.c.id)
            )
            for row in connection.execute(query):
                found.setdefault(row.job, []).append(Verdict.from_json(row.document))
    return found


def at_stage(store: Store, jobs: Iterable[str], stage: Stage) -> dict[str, list[Verdict]]:
    """By job, the verdicts at a stage in order, if any."""
    found = of_jobs(store, jobs, verdicts.c.stage == str(stage))
    return {job: sorted(given, key=lambda verdict: verdict.seq) for job, given in found.items()}


def last_at_stage(store: Store, jobs: Iterable[str], stage: Stage) -> dict[str, Verdict]:
    """By job, the last verdict at a stage, if any."""
    return {job: found[-1] for job, found in at_stage(store, jobs, stage).items()}


def alarms(store: Store, jobs: Iterable[str]) -> dict[str, list[Verdict]]:
    """By job, the alarms that it has raised, if any."""
    return of_jobs(store, jobs, verdicts.c.level.in_([str(level) for level in ALARMS]))


def next_seq(store: Store, jobs: list[str], stage: Stage) -> list[int]:
    """For each job, the number of its next verdict at a stage that may have several."""
    wanted = pl.DataFrame({"job": jobs}, schema={"job": pl.String}).unique()
    if wanted.is_empty():
        return []
    with store.reading() as connection:
        staged = bulk.stage(connection, verdicts, wanted)
        query = (
            sa.select(verdicts.c.job, sa.func.max(verdicts.c.seq).label("last"))
            .join_from(staged, verdicts, staged.c.job == verdicts.c.job)
            .where(verdicts.c.stage == str(stage))
            .group_by(verdicts.c.job)
        )
        last = {row.job: row.last for row in connection.execute(query)}
    return [last.get(job, -1) + 1 for job in jobs]
