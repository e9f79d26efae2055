"""First metrics in the store: which jobs have none yet, and filling them in."""

import polars as pl
import sqlalchemy as sa

from tocsin.core.fields import KEY, Part, fields_of
from tocsin.core.stages import EARLY_SECONDS
from tocsin.store import bulk
from tocsin.store.database import Store
from tocsin.store.tables import NO_TASK, jobs

__all__ = ["fill", "unmeasured"]

_FIELDS = fields_of(Part.FIRST_METRICS)
_READ = (*KEY, "raw_id", "start", "end", "node_list", "alloc_nodes", "alloc_cpus", "req_cpus")


def unmeasured(store: Store, cluster: str, since: int, until: int) -> pl.DataFrame:
    """The jobs that reached `early` in this time and have no first metrics, with what is needed to measure them."""
    early = jobs.c.start + EARLY_SECONDS
    query = sa.select(*(jobs.c[name] for name in _READ)).where(
        jobs.c.cluster == cluster,
        early.between(since, until),
        sa.or_(jobs.c.end.is_(None), jobs.c.end >= early),
        *(jobs.c[name].is_(None) for name in _FIELDS),
    )
    with store.reading() as connection:
        return bulk.frame(connection, query)


def fill(store: Store, found: pl.DataFrame) -> int:
    """Write the first metrics of jobs that have none; others are unchanged. Returns the number of jobs changed."""
    if found.is_empty():
        return 0
    rows = found.select(*KEY, *_FIELDS).with_columns(pl.col("task").fill_null(NO_TASK))
    with store.writing() as connection:
        staged = bulk.stage(connection, jobs, rows.select(KEY))
        query = (
            sa.select(*(jobs.c[name] for name in KEY))
            .join_from(staged, jobs, sa.and_(*(jobs.c[name] == staged.c[name] for name in KEY)))
            .where(*(jobs.c[name].is_(None) for name in _FIELDS))
        )
        free = bulk.frame(connection, query).with_columns(pl.col("task").fill_null(NO_TASK))
        rows = rows.join(free, on=KEY)
        bulk.update(connection, jobs, rows, KEY)
    return rows.height
