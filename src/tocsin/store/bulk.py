"""Bulk reads and writes between frames and tables, on SQLite and PostgreSQL.

SQLite is read through Python's own module instead of ADBC on purpose: the ADBC driver brings a second copy of
SQLite into the process, and when one copy closes the file, POSIX drops the locks that the other holds on it. A second
process could then write in the middle of our transaction (sqlite.org/howtocorrupt.html, section 2.2.1).
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from importlib import import_module
from typing import Any

import polars as pl
import sqlalchemy as sa

from tocsin.core.frames import SCHEMA
from tocsin.store.tables import NO_TASK

__all__ = ["filled", "frame", "frames", "insert", "insert_new", "stage", "update"]

_ROWS = 10_000  # per fetch, to bound the number of Python objects


def filled(frame: pl.DataFrame) -> list[str]:
    """The columns with any value; most sources fill few fields, and nulls cost as much time."""
    return [column.name for column in frame if column.null_count() < frame.height]


def frame(connection: sa.Connection, query: sa.Select[Any]) -> pl.DataFrame:
    """All rows of a query on job fields."""
    empty = pl.DataFrame(schema={column.name: SCHEMA[column.name] for column in query.selected_columns})
    return pl.concat([empty, *frames(connection, query)], rechunk=True)


def frames(connection: sa.Connection, query: sa.Select[Any], size: int = _ROWS) -> Iterator[pl.DataFrame]:
    """The rows of a query on job fields, as frames of at most `size` rows.

    Uses the driver's cursor: SQLAlchemy's rows take 50 % longer.
    """
    names = [column.name for column in query.selected_columns]
    compiled = query.compile(dialect=connection.dialect, compile_kwargs={"render_postcompile": True})
    values = compiled.construct_params()
    if connection.dialect.name == "sqlite":
        cursor = _driver(connection).execute(
            str(compiled), [values[name] for name in compiled.positiontup or ()]
        )
    else:
        cursor = _driver(connection).cursor(name="tocsin_jobs")  # a named cursor stays on the server
        cursor.execute(str(compiled), values)
    with closing(cursor):
        while rows := cursor.fetchmany(size):
            columns = zip(names, zip(*rows, strict=True), strict=True)
            yield pl.DataFrame([_column(name, column) for name, column in columns])


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    if SCHEMA[name] == pl.Boolean:  # 0 and 1 in SQLite
        return pl.Series(name, values).cast(pl.Boolean)
    series = pl.Series(name, values, dtype=SCHEMA[name])
    return series.replace(NO_TASK, None) if name == "task" else series


def insert(connection: sa.Connection, table: sa.Table, frame: pl.DataFrame) -> None:
    """Insert the rows, without columns that are empty."""
    if frame.is_empty():
        return
    names = filled(frame)
    if connection.dialect.name == "sqlite":
        statement = _compiled(
            connection.dialect, sa.insert(table).values({n: sa.bindparam(n) for n in names})
        )
        connection.exec_driver_sql(statement, frame.select(names).rows())
        return
    quote = connection.dialect.identifier_preparer
    columns = ", ".join(quote.quote(name) for name in names)
    text = frame.select(names).write_csv(include_header=False, quote_style="non_numeric")
    into = f"COPY {quote.format_table(table)} ({columns}) FROM STDIN (FORMAT csv)"
    with _driver(connection).cursor() as cursor, cursor.copy(into) as copy:
        # Unquoted empty is null, quoted is the empty text, in PostgreSQL as in polars.
        copy.write(text.encode())


def insert_new(connection: sa.Connection, table: sa.Table, row: dict[str, Any]) -> bool:
    """Insert one row unless its unique key exists; returns whether it was inserted."""
    # import only the dialect in use: PostgreSQL's takes longer than a small query
    into = import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert
    statement = into(table).values(row).on_conflict_do_nothing().inline()
    return connection.execute(statement, execution_options={"preserve_rowcount": True}).rowcount == 1


def stage(connection: sa.Connection, table: sa.Table, frame: pl.DataFrame) -> sa.Table:
    """The frame as a temporary table, typed as in `table`; replaced by the next call."""
    staged = _staged(table, tuple(frame.columns))
    staged.drop(connection, checkfirst=True)
    staged.create(connection, checkfirst=False)
    insert(connection, staged, frame)
    return staged


@lru_cache(maxsize=64)
def _staged(table: sa.Table, names: tuple[str, ...]) -> sa.Table:
    return sa.Table(
        f"staged_{table.name}",
        sa.MetaData(),
        *(sa.Column(name, table.c[name].type) for name in names),
        prefixes=["TEMPORARY"],
    )


def update(connection: sa.Connection, table: sa.Table, frame: pl.DataFrame, key: Sequence[str]) -> None:
    """Update the rows named by the key columns with the frame's other columns."""
    if frame.is_empty():
        return
    names = [name for name in frame.columns if name not in key]
    if connection.dialect.name == "sqlite":
        changed = sa.update(table).values({name: sa.bindparam(f"new_{name}") for name in names})
        changed = changed.where(*(table.c[name] == sa.bindparam(f"old_{name}") for name in key))
        # SQLite's parameters are positional: values in the table's order, then the key.
        ordered = [column.name for column in table.c if column.name in names]
        connection.exec_driver_sql(
            _compiled(connection.dialect, changed), frame.select(*ordered, *key).rows()
        )
        return
    staged = stage(connection, table, frame)
    connection.execute(
        sa.update(table)
        .values({name: staged.c[name] for name in names})
        .where(*(table.c[name] == staged.c[name] for name in key))
    )


def _compiled(dialect: sa.Dialect, statement: sa.Insert | sa.Update) -> str:
    return str(statement.compile(dialect=dialect))


def _driver(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection
