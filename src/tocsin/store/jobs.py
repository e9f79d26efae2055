"""Jobs in the store: merged by key, listed by attributes and time."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.errors import InputError
from tocsin.core.fields import FIELDS, KEY
from tocsin.core.frames import SCHEMA
from tocsin.core.printable import without_surrogates
from tocsin.core.stages import Stage
from tocsin.store import bulk
from tocsin.store.database import Store
from tocsin.store.merge import NEEDED, merge
from tocsin.store.tables import NO_TASK, jobs, key_text, verdicts

__all__ = [
    "LAG",
    "Counts",
    "Filter",
    "cluster_names",
    "load",
    "merge_in",
    "number_of_jobs",
    "scan",
    "superseded",
    "upsert",
]

LAG = 10
"""Default of `history.lag`: seconds after its end at which an imported outcome counts as known."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was done with the rows of a frame; the counts add up to its rows.

    A repeated key in a frame is one job: the second row counts as unchanged.
    """

    new: int = 0
    updated: int = 0
    unchanged: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(self.new + other.new, self.updated + other.updated, self.unchanged + other.unchanged)


def upsert(store: Store, frame: pl.DataFrame, *, lag: int = LAG) -> Counts:
    """Merge a conforming frame into the store, in one transaction."""
    with store.writing() as connection:
        return merge_in(connection, frame, lag=lag)


def merge_in(connection: sa.Connection, frame: pl.DataFrame, *, lag: int = LAG) -> Counts:
    """Merge a conforming frame inside a transaction that is already open; see `tocsin.store.merge` for the rules."""
    if frame.is_empty():
        return Counts()
    incoming = _storable(frame)
    if connection.dialect.name == "postgresql":
        # Serialise writers of jobs, as on SQLite; readers are not blocked.
        connection.exec_driver_sql("LOCK TABLE jobs IN SHARE ROW EXCLUSIVE MODE")
    staged = bulk.stage(connection, jobs, incoming.select(KEY).unique())
    query = sa.select(*(jobs.c[name] for name in incoming.columns)).join_from(
        staged, jobs, sa.and_(*(jobs.c[name] == staged.c[name] for name in KEY))
    )
    known = pl.concat([incoming.clear(), *bulk.frames(connection, query)]).with_columns(_task_for_sql)
    found = merge(known, incoming, lag)
    bulk.insert(connection, jobs, found.new)
    bulk.update(connection, jobs, found.changed, KEY)
    new, updated = found.new.height, found.changed.height
    return Counts(new, updated, frame.height - new - updated)


_task_for_sql = pl.col("task").fill_null(NO_TASK)


def _storable(frame: pl.DataFrame) -> pl.DataFrame:
    """The non-empty columns, with values that both databases can store."""
    for name in ("cluster", "job_id", "submit"):
        if missing := frame[name].null_count():
            raise InputError(
                f"{missing} of {frame.height} jobs have no {name}; a job cannot be stored without it"
            )
    names = set(bulk.filled(frame)).union(KEY, NEEDED)
    return frame.select(
        # PostgreSQL has no NUL in text, SQLite no NaN in numbers.
        pl.col(name).str.replace_all("\0", "\ufffd", literal=True)
        if dtype == pl.String
        else pl.col(name).fill_nan(None)
        if dtype == pl.Float64
        else pl.col(name)
        for name, dtype in SCHEMA.items()
        if name in names
    ).with_columns(_task_for_sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Selects jobs, as in sacct; an empty value is no condition."""

    clusters: Sequence[str] = ()
    ids: Sequence[tuple[int, int | None]] = ()
    """(id, task); without a task, the job, or the array and all of its tasks."""
    users: Sequence[str] = ()
    accounts: Sequence[str] = ()
    partitions: Sequence[str] = ()
    states: Sequence[str] = ()
    names: Sequence[str] = ()
    domains: Sequence[str] = ()
    """The domain in the verdict at submission; tasks have their array's."""
    since: int | None = None
    """Only jobs that were alive at this instant or later..."""
    until: int | None = None
    """...and that could have started by this one."""
    arrays: bool = False
    """Also list an array as submitted when all of its tasks are listed one by one."""
    order: str = "submit"
    """A field; with a leading minus, in descending order."""
    limit: int | None = None
    past: tuple[int, int, int | None, str] | None = None
    """Only jobs after this (submit, id, task, cluster) in the order `submit` or `-submit`."""


def cluster_names(store: Store) -> list[str]:
    """The clusters that have jobs; one index lookup for each."""
    found: list[str] = []
    with store.reading() as connection:
        query = sa.select(sa.func.min(jobs.c.cluster))
        while name := connection.execute(
            query.where(jobs.c.cluster > found[-1]) if found else query
        ).scalar():
            found.append(name)
    return found


def number_of_jobs(store: Store) -> int:
    with store.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(jobs)).scalar_one()


def load(store: Store, which: Filter = Filter(), columns: Sequence[str] | None = None) -> pl.DataFrame:  # noqa: B008 - frozen
    """The jobs as one frame, with the fields in `columns` (default: all)."""
    return pl.concat([_empty(columns), *scan(store, which, columns)], rechunk=True)


def scan(
    store: Store,
    which: Filter = Filter(),  # noqa: B008 - frozen
    columns: Sequence[str] | None = None,
    *,
    batch: int = 10_000,
) -> Iterator[pl.DataFrame]:
    """The jobs in frames of at most `batch` rows, in bounded memory."""
    wanted = _empty(columns)
    conditions = _conditions(which)
    with store.reading() as connection:
        present = wanted.columns if which.limit else _present(connection, wanted.columns, conditions)
        if not present:
            return
        query = (
            sa.select(*(jobs.c[name] for name in present)).where(*conditions).order_by(*_order(which.order))
        )
        for frame in bulk.frames(connection, query.limit(which.limit), batch):
            yield frame.with_columns(
                pl.lit(None, dtype=dtype).alias(name)
                for name, dtype in wanted.schema.items()
                if name not in frame.columns
            ).select(wanted.columns)


def _present(
    connection: sa.Connection, names: Sequence[str], conditions: Sequence[sa.ColumnElement[bool]]
) -> list[str]:
    """The columns with any value. Most stores have two thirds of the fields empty; skipping them is twice as fast."""
    query = sa.select(*(sa.func.count(jobs.c[name]) for name in names)).where(*conditions)
    return [name for name, count in zip(names, connection.execute(query).one(), strict=True) if count]


def _empty(columns: Sequence[str] | None) -> pl.DataFrame:
    for name in columns or ():
        _known_field(name)
    return pl.DataFrame(schema={name: SCHEMA[name] for name in columns or SCHEMA})


def _known_field(name: str) -> str:
    if name not in FIELDS:
        raise InputError(f'"{name[:80]}" is not a job field; the fields are {", ".join(FIELDS)}')
    return name


def _order(order: str) -> list[sa.ColumnElement[Any]]:
    first = jobs.c[_known_field(order.removeprefix("-"))]
    names = [first, *(jobs.c[name] for name in ("submit", "job_id", "task", "cluster") if name != first.name)]
    down = order.startswith("-")
    gaps_last = [first.is_(None)] if first.nullable else []
    return [*gaps_last, *(column.desc() if down else column.asc() for column in names)]


def _conditions(which: Filter) -> list[sa.ColumnElement[bool]]:
    choices = {
        "cluster": which.clusters,
        "user": which.users,
        "account": which.accounts,
        "partition": which.partitions,
        "state": which.states,
        "name": which.names,
    }
    found: list[sa.ColumnElement[bool]] = [
        jobs.c[name].in_(list(map(without_surrogates, wanted))) for name, wanted in choices.items() if wanted
    ]
    if which.ids:
        found.append(sa.or_(*_by_id(which.ids)))
    if which.domains:
        array = jobs.c.cluster + ":" + sa.cast(jobs.c.job_id, sa.Text) + "@" + sa.cast(jobs.c.submit, sa.Text)
        text = sa.cast(
            verdicts.c.document, sa.Text
        )  # a path into JSON would be written differently for each database
        named = [text.contains(f'"domain": {json.dumps(name)}', autoescape=True) for name in which.domains]
        at_submission = verdicts.c.stage == str(Stage.SUBMIT)
        found.append(
            sa.exists().where(verdicts.c.job.in_((key_text(), array)), at_submission, sa.or_(*named))
        )
    if which.since is not None:
        found.append(sa.or_(jobs.c.end.is_(None), jobs.c.end >= which.since))
    if which.until is not None:
        found.append(jobs.c.submit <= which.until)
        found.append(sa.or_(jobs.c.eligible.is_(None), jobs.c.eligible <= which.until))
    if not which.arrays:
        found.append(sa.not_(superseded()))
    if which.past is not None:
        submit, job_id, task, cluster = which.past
        here = sa.tuple_(jobs.c.submit, jobs.c.job_id, jobs.c.task, jobs.c.cluster)
        there = sa.tuple_(submit, job_id, NO_TASK if task is None else task, cluster)
        found.append(here < there if which.order.startswith("-") else here > there)
    return found


def _by_id(ids: Sequence[tuple[int, int | None]]) -> Iterator[sa.ColumnElement[bool]]:
    if whole := [job_id for job_id, task in ids if task is None]:
        yield jobs.c.job_id.in_(whole)
    if tasks := [(job_id, task) for job_id, task in ids if task is not None]:
        yield sa.tuple_(jobs.c.job_id, jobs.c.task).in_(tasks)


def superseded() -> sa.ColumnElement[bool]:
    """Selects arrays as submitted whose tasks all have rows of their own."""
    tasks = jobs.alias("tasks")
    here = (
        sa.select(sa.func.count(tasks.c.task.distinct()))
        .where(
            tasks.c.job_id == jobs.c.job_id,
            tasks.c.cluster == jobs.c.cluster,
            tasks.c.task != NO_TASK,
            tasks.c.submit >= jobs.c.submit,  # a requeued task has a later submit time
        )
        .scalar_subquery()
    )
    return sa.and_(
        jobs.c.task == NO_TASK,
        jobs.c.array.is_not(None),
        sa.func.coalesce(jobs.c.array_tasks <= here, sa.false()),
    )
