"""Opens the database, SQLite or PostgreSQL, and migrates it to the current schema."""

import importlib.util
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from tocsin.core.errors import SettingsError, StoreError
from tocsin.core.settings import without_password
from tocsin.store.home import followed, open_private
from tocsin.store.migrations import HEAD, VERSION_TABLE

__all__ = ["Store", "checked_address", "open_store", "readable_errors"]

_LOCK_NUMBER = 0x746F6373  # "tocs": PostgreSQL advisory lock held during migrations

_BULK_CACHE = "PRAGMA cache_size = -65536"  # 64 MiB
_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -8192",  # 8 MiB: a service has several connections, each with a cache of its own
    "PRAGMA wal_autocheckpoint = 8000",  # pages: 32 MiB; imports ran 20 % faster than with the default of 4 MiB
)


@dataclass(frozen=True, slots=True)
class Store:
    """An open store; use it inside `reading()` or `writing()`, which turn driver errors into StoreError."""

    engine: sa.Engine
    timeout: float
    found: str | None = None
    """The schema version before it was opened and migrated; None: it was new."""
    _closed: Event = field(default_factory=Event, init=False, repr=False, compare=False)

    @property
    def place(self) -> str:
        """Its URL without the password."""
        url = self.engine.url
        return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)

    @property
    def embedded(self) -> bool:
        """Whether it is SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection with a consistent snapshot."""
        options = {} if self.embedded else {"isolation_level": "REPEATABLE READ"}
        with self._transaction(options) as connection:
            yield connection

    @contextmanager
    def writing(self, *, bulk: bool = False) -> Iterator[sa.Connection]:
        """A transaction; with `bulk`, for many rows, the connection gets a larger cache and keeps it."""
        with self._transaction({"tocsin_writing": True}) as connection:
            if bulk and self.embedded:
                connection.exec_driver_sql(_BULK_CACHE)
            yield connection

    @contextmanager
    def _transaction(self, options: dict[str, Any]) -> Iterator[sa.Connection]:
        with readable_errors(self), self.engine.connect() as connection:
            connection.execution_options(**options)
            try:
                with connection.begin():
                    if not self.embedded:
                        # PostgreSQL's JIT takes seconds for queries that run in milliseconds.
                        wait = int(self.timeout * 1000)
                        connection.exec_driver_sql(f"SET LOCAL jit = off; SET LOCAL lock_timeout = {wait}")
                    yield connection
            finally:
                if self._closed.is_set() and not connection.invalidated:
                    connection.detach()  # closed by another thread meanwhile, so no pool takes it back

    def close(self) -> None:
        self._closed.set()
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str, *, password: str | None = None, timeout: float = 30.0) -> Store:
    """Open the store, creating or migrating it if needed. `timeout`: seconds to wait for another writer."""
    address = _address(url, password)
    store = Store(
        _sqlite(address, timeout) if address.get_backend_name() == "sqlite" else _postgres(address), timeout
    )
    try:
        version = _version(store)
        if version is not None and version > HEAD:
            raise StoreError(
                f"the store {store.place} has schema {version}, newer than schema {HEAD} of this tocsin; "
                "upgrade tocsin, or name another store"
            )
        if version != HEAD:
            _migrate(store)
    except BaseException:
        store.close()
        raise
    return replace(store, found=version)


def checked_address(url: str) -> None:
    """Raise if `open_store` would refuse the URL."""
    _address(url, None)


def _address(url: str, password: str | None) -> URL:
    try:
        address = make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise SettingsError(_NO_URL.format(url=without_password(url)[:80])) from None
    if address.password is not None or "password" in address.query:
        raise SettingsError(
            f"the store's URL {without_password(url)[:80]} contains a password, which process lists would show; put it into a file and set store.password_file"
        )
    match address.drivername:
        case "sqlite" | "sqlite+pysqlite":
            if not address.database or address.database == ":memory:":
                raise SettingsError(_NO_URL.format(url=without_password(url)[:80]))
            return address
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return address.set(drivername="postgresql+psycopg", password=password)
    raise SettingsError(_NO_URL.format(url=without_password(url)[:80]))


_NO_URL = (
    'the store "{url}" is not a supported URL; write sqlite:////path/to/tocsin.db '
    "or postgresql://user@host/database"
)


def _sqlite(address: URL, timeout: float) -> sa.Engine:
    with suppress(OSError):  # SQLite reports these better
        os.close(open_private(followed(Path(address.database or "")), os.O_RDWR))
    engine = sa.create_engine(address, connect_args={"timeout": timeout})

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # no implicit transactions
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A read transaction cannot wait to become a writer, so writers begin as such.
        writing = connection.get_execution_options().get("tocsin_writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def _postgres(address: URL) -> sa.Engine:
    if importlib.util.find_spec("psycopg") is None:
        raise StoreError(
            f"the store {address.render_as_string()} needs the driver for PostgreSQL; "
            "install it with: pip install 'tocsin[postgres]'"
        )
    waits = {} if "connect_timeout" in address.query else {"connect_timeout": 10}
    return sa.create_engine(address, connect_args=waits)


def _version(store: Store) -> str | None:
    """The schema version; None for a new store."""
    with store.reading() as connection:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608 - our own name
        return None if found is None else str(found)


def _migrate(store: Store) -> None:
    """Apply missing migrations. A second process waits and then finds nothing to do."""
    from alembic import command
    from alembic.config import Config

    if store.embedded:
        _set_wal(store)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    with store.writing() as connection:
        if not store.embedded:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_NUMBER})")
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _set_wal(store: Store) -> None:
    """Switch to WAL, with retries: SQLite does not wait if two processes do so at once."""
    deadline = time.monotonic() + store.timeout
    with readable_errors(store), store.engine.connect() as connection:
        raw: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]  # of any driver
        while True:
            try:
                raw.execute("PRAGMA journal_mode = WAL").fetchone()
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


@contextmanager
def readable_errors(store: Store) -> Iterator[None]:
    """Turn driver errors into StoreError."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise StoreError(_sentence(error.orig or error, store)) from error
    except Exception as error:
        # Bulk operations use the driver directly, so SQLAlchemy does not wrap its errors.
        if isinstance(error, sqlite3.Error) or type(error).__module__.startswith("psycopg"):
            raise StoreError(_sentence(error, store)) from error
        raise


def _sentence(error: Any, store: Store) -> str:
    text = str(error).strip().split("\n")[0]
    if "is locked" in text or getattr(error, "sqlstate", None) == "55P03":
        return (
            f"the store {store.place} was locked by another process for {store.timeout:g} s; "
            "try again when that import or backup is done"
        )
    if "not a database" in text or "malformed" in text:
        return f"the store {store.place} cannot be read: {text}; restore a backup, or use another file"
    if "unable to open" in text:
        return (
            f"cannot open the store {store.place}: no such folder, or no write permission; "
            "create the folder, or set TOCSIN_HOME or store.url"
        )
    if "readonly" in text:
        return f"the store {store.place} is read-only for this user; run as its owner, or set TOCSIN_HOME"
    if "is full" in text:
        return f"no space left for the store {store.place}: {text}; free some space (the folder cache beside it may be deleted), then run tocsin prune"
    if isinstance(error, sqlite3.Error):
        return f"the store {store.place} refused: {text}"
    if "authentication" in text or "no password supplied" in text:
        return (
            f"the store {store.place} refuses this user: {text}; put the password into a file and set "
            "store.password_file"
        )
    if "connect" in text:
        return f"cannot reach the store {store.place}: {text}; is PostgreSQL up, and is store.url right?"
    return f"the store {store.place} refused: {text}"
