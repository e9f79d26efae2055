"""What a watcher reads from the store: its progress, the verdicts given, and jobs by their keys, in bulk."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA
from tocsin.store import bulk
from tocsin.store.database import Store
from tocsin.store.tables import NO_TASK, imports, jobs, key_text, verdicts

__all__ = [
    "Progress",
    "advance",
    "arrays",
    "begin",
    "count_events",
    "ended_since",
    "fingerprint",
    "given",
    "jobs_named",
    "living",
    "rejected_events",
    "tasks",
    "with_raw_ids",
]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the watch of a cluster; stored as an import that never finishes."""

    number: int
    began: int
    """Jobs that ended before the first round are not watched."""
    reached: int
    """Everything in accounting up to here is stored and has its verdicts."""


def begin(store: Store, cluster: str, now: int, *, catch_up: int = 0) -> Progress:
    """The progress of this cluster's watch; the first watch begins now.

    The first watch reads accounting from the last event in the store on, at most `catch_up` seconds back: jobs that an
    import saw alive, or did not see at all, may have ended since then.
    """
    identity = f"watch:{cluster}"
    query = (
        sa.select(imports.c.id, imports.c.started, imports.c.position)
        .where(imports.c.identity == identity)
        .order_by(imports.c.id)
        .limit(1)
    )
    with store.writing() as connection:
        row = connection.execute(query).first()
        if row is None:
            reached = max(now - catch_up, _last_event(connection, cluster, now)) if catch_up else now
            zeros: dict[str, Any] = dict.fromkeys(("read", "new", "updated", "unchanged"), 0)
            connection.execute(
                sa.insert(imports).values(
                    identity=identity, started=now, position=reached, rejected={}, **zeros
                )
            )
            row = connection.execute(query).one()
    return Progress(row.id, row.started, row.position)


def _last_event(connection: sa.Connection, cluster: str, now: int) -> int:
    """The last instant that a stored job of this cluster tells about; now if there is no job."""
    instants = (sa.func.max(jobs.c[name]) for name in ("submit", "start", "end"))
    row = connection.execute(sa.select(*instants).where(jobs.c.cluster == cluster)).one()
    return min(now, max((at for at in row if at is not None), default=now))


def advance(store: Store, progress: Progress, reached: int) -> Progress:
    """Record that everything up to `reached` is done; it never decreases."""
    reached = max(reached, progress.reached)
    if reached != progress.reached:
        with store.writing() as connection:
            connection.execute(
                sa.update(imports)
                .where(imports.c.id == progress.number, imports.c.position < reached)
                .values(position=reached)
            )
    return Progress(progress.number, progress.began, reached)


def count_events(
    connection: sa.Connection, progress: Progress, read: int, rejected: Mapping[str, int]
) -> None:
    """Count events that the watch has read, and those that it could not read, by reason."""
    this = imports.c.id == progress.number
    before: dict[str, int] = connection.execute(sa.select(imports.c.rejected).where(this)).scalar_one()
    total = {reason: before.get(reason, 0) + rejected.get(reason, 0) for reason in {**before, **rejected}}
    connection.execute(sa.update(imports).where(this).values(read=imports.c.read + read, rejected=total))


def rejected_events(store: Store, cluster: str) -> dict[str, int]:
    """The events of a cluster that could not be read, by reason."""
    query = sa.select(imports.c.rejected).where(imports.c.identity == f"watch:{cluster}").limit(1)
    with store.reading() as connection:
        return dict(connection.execute(query).scalar() or {})


def given(store: Store, keys: Iterable[str]) -> list[tuple[str, str]]:
    """(job, stage) of the verdicts with seq 0 that these jobs have."""
    wanted = pl.DataFrame({"job": list(keys)}, schema={"job": pl.String})
    if wanted.is_empty():
        return []
    with store.reading() as connection:
        staged = bulk.stage(connection, verdicts, wanted)
        rows = connection.execute(
            sa.select(verdicts.c.job, verdicts.c.stage)
            .join_from(staged, verdicts, staged.c.job == verdicts.c.job)
            .where(verdicts.c.seq == 0)
        ).all()
    return [(row.job, row.stage) for row in rows]


def jobs_named(store: Store, keys: pl.DataFrame) -> pl.DataFrame:
    """The jobs with these keys, in no particular order, with all fields."""
    if keys.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    wanted = keys.select(KEY).unique().with_columns(pl.col("task").fill_null(NO_TASK))
    with store.reading() as connection:
        staged = bulk.stage(connection, jobs, wanted)
        query = sa.select(*(jobs.c[name] for name in SCHEMA)).join_from(
            staged, jobs, sa.and_(*(jobs.c[name] == staged.c[name] for name in KEY))
        )
        return bulk.frame(connection, query)


def with_raw_ids(store: Store, cluster: str, ids: Iterable[int], since: int) -> pl.DataFrame:
    """The jobs with these raw ids that had not ended by an instant, with all fields; requeued jobs have several rows."""
    wanted = pl.DataFrame({"raw_id": list(ids)}, schema={"raw_id": pl.Int64})
    if wanted.is_empty():
        return pl.DataFrame(schema=SCHEMA)
    with store.reading() as connection:
        staged = bulk.stage(connection, jobs, wanted)
        query = (
            sa.select(*(jobs.c[name] for name in SCHEMA))
            .join_from(staged, jobs, staged.c.raw_id == jobs.c.raw_id)
            .where(jobs.c.cluster == cluster, sa.or_(jobs.c.end.is_(None), jobs.c.end >= since))
        )
        return bulk.frame(connection, query)


def tasks(store: Store, cluster: str, array: int) -> pl.DataFrame:
    """The tasks of an array, with all fields."""
    return _rows(store, SCHEMA, jobs.c.cluster == cluster, jobs.c.job_id == array, jobs.c.task != NO_TASK)


def living(store: Store, cluster: str) -> pl.DataFrame:
    """The keys of jobs with a verdict and no end yet; without arrays, which end with their tasks."""
    has_verdict = sa.exists().where(verdicts.c.job == key_text())
    here = jobs.c.cluster == cluster
    return _rows(store, KEY, here, jobs.c.outcome.is_(None), jobs.c.array.is_(None), has_verdict)


def ended_since(store: Store, cluster: str, since: int) -> pl.DataFrame:
    """The jobs known to have ended at this instant or later, with their keys, starts and ends."""
    return _rows(
        store,
        (*KEY, "start", "end", "outcome"),
        jobs.c.cluster == cluster,
        jobs.c.end >= since,
        jobs.c.outcome.is_not(None),
    )


def fingerprint(store: Store, cluster: str, until: int) -> str:
    """A digest of the outcomes known at an instant: it changes when an older log is imported later."""
    numbers = (sa.func.count(), *(sa.func.sum(jobs.c[name]) for name in ("submit", "known_at", "job_id")))
    query = sa.select(*numbers).where(jobs.c.cluster == cluster, jobs.c.known_at <= until)
    with store.reading() as connection:
        return ":".join(str(number or 0) for number in connection.execute(query).one())


def arrays(store: Store, cluster: str, ids: Iterable[int]) -> pl.DataFrame:
    """The keys of records with these ids that are not tasks."""
    wanted = pl.DataFrame({"job_id": list(ids)}, schema={"job_id": pl.Int64})
    if wanted.is_empty():
        return pl.DataFrame(schema={name: SCHEMA[name] for name in KEY})
    with store.reading() as connection:
        staged = bulk.stage(connection, jobs, wanted)
        query = (
            sa.select(*(jobs.c[name] for name in KEY))
            .join_from(staged, jobs, staged.c.job_id == jobs.c.job_id)
            .where(jobs.c.cluster == cluster, jobs.c.task == NO_TASK)
        )
        return bulk.frame(connection, query)


def _rows(store: Store, names: Iterable[str], *conditions: sa.ColumnElement[bool]) -> pl.DataFrame:
    query = sa.select(*(jobs.c[name] for name in names)).where(*conditions)
    with store.reading() as connection:
        return bulk.frame(connection, query)
