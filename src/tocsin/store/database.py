"""Opening the database: SQLite by a file, PostgreSQL by a URL, brought to the newest form on the way."""

import importlib.util
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from tocsin.core.errors import SettingsError, StoreError
from tocsin.store.migrations import HEAD, VERSION_TABLE

__all__ = ["Store", "checked_address", "open_store"]

_LOCK_NUMBER = (
    0x746F6373  # "tocs": an advisory lock of PostgreSQL, held while the form of the store is changed
)

_PRAGMAS = (
    "PRAGMA synchronous = NORMAL",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",  # 64 MiB
    "PRAGMA wal_autocheckpoint = 8000",  # pages: 32 MiB; imports ran 20 % faster than with the default of 4 MiB
)


@dataclass(frozen=True, slots=True)
class Store:
    """An open store. Work on it is done inside `reading()` or `writing()`; errors leave both as sentences."""

    engine: sa.Engine
    timeout: float

    @property
    def place(self) -> str:
        """Its address without the password, as settings write it."""
        url = self.engine.url
        return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)

    @property
    def embedded(self) -> bool:
        """Whether it is a file of SQLite."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees the store as it is at one moment."""
        options = {} if self.embedded else {"isolation_level": "REPEATABLE READ"}
        with self._transaction(options) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction: all that is done in it is stored, or nothing."""
        with self._transaction({"tocsin_writing": True}) as connection:
            yield connection

    @contextmanager
    def _transaction(self, options: dict[str, Any]) -> Iterator[sa.Connection]:
        with _said(self), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                if not self.embedded:
                    # Compiling (JIT) takes PostgreSQL seconds for what it answers in milliseconds.
                    wait = int(self.timeout * 1000)
                    connection.exec_driver_sql(f"SET LOCAL jit = off; SET LOCAL lock_timeout = {wait}")
                yield connection

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(url: str, *, password: str | None = None, timeout: float = 30.0) -> Store:
    """Open, and create or migrate where that is needed. `timeout`: seconds to wait for another writer."""
    address = _address(url, password)
    store = Store(
        _sqlite(address, timeout) if address.get_backend_name() == "sqlite" else _postgres(address), timeout
    )
    try:
        version = _version(store)
        if version is not None and version > HEAD:
            raise StoreError(
                f"the store {store.place} has the form {version}, newer than the form {HEAD} of this tocsin; "
                "upgrade tocsin, or name another store"
            )
        if version != HEAD:
            _migrate(store)
    except BaseException:
        store.close()
        raise
    return store


def checked_address(url: str) -> None:
    """Raises where `open_store` would refuse the URL itself."""
    _address(url, None)


def _address(url: str, password: str | None) -> URL:
    try:
        address = make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise SettingsError(_NO_URL.format(url=url[:80])) from None
    if address.password is not None or "password" in address.query:
        raise SettingsError(
            f"the store's URL {address.difference_update_query(['password']).render_as_string()} has a password in it, "
            "which every list of processes would show; put it into a file and name that in store.password_file"
        )
    match address.drivername:
        case "sqlite" | "sqlite+pysqlite":
            if not address.database or address.database == ":memory:":
                raise SettingsError(_NO_URL.format(url=url[:80]))
            return address
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return address.set(drivername="postgresql+psycopg", password=password)
    raise SettingsError(_NO_URL.format(url=url[:80]))


_NO_URL = (
    'the store "{url}" is no address that tocsin knows; write sqlite:////path/to/tocsin.db '
    "or postgresql://user@host/database"
)


def _sqlite(address: URL, timeout: float) -> sa.Engine:
    engine = sa.create_engine(address, connect_args={"timeout": timeout})

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # Python's module opens no transactions of its own
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A reader that becomes a writer cannot wait for another writer; so a writer says it from the start.
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
    """The form of the store; None for a new one. This is all that opening an up-to-date store costs."""
    with store.reading() as connection:
        if not sa.inspect(connection).has_table(VERSION_TABLE):
            return None
        found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()  # noqa: S608 - our own name
        return None if found is None else str(found)


def _migrate(store: Store) -> None:
    """Apply the missing steps. Of two processes that do so at once, the second waits and finds nothing to do."""
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
    """Readers and a writer side by side. SQLite does not wait when two processes ask for it at once; so we do."""
    deadline = time.monotonic() + store.timeout
    with _said(store), store.engine.connect() as connection:
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
def _said(store: Store) -> Iterator[None]:
    """Turn the drivers' errors into sentences."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise StoreError(_sentence(error.orig or error, store)) from error
    except Exception as error:
        # Bulk work talks to the driver itself, whose errors SQLAlchemy then does not wrap.
        if isinstance(error, sqlite3.Error) or type(error).__module__.startswith("psycopg"):
            raise StoreError(_sentence(error, store)) from error
        raise


def _sentence(error: Any, store: Store) -> str:
    text = str(error).strip().split("\n")[0]
    if "is locked" in text or getattr(error, "sqlstate", None) == "55P03":
        return (
            f"the store {store.place} stayed locked by another process for {store.timeout:g} s; "
            "wait until that import or backup is done, and try again"
        )
    if "not a database" in text or "malformed" in text:
        return (
            f"the store {store.place} cannot be read: {text}; name another file, or put a backup in its place"
        )
    if "unable to open" in text:
        return (
            f"cannot open the store {store.place}: no such folder, or no right to write there; "
            "create the folder, or set TOCSIN_HOME or store.url to another place"
        )
    if "readonly" in text:
        return f"the store {store.place} may not be written to by this user; run as its owner, or set TOCSIN_HOME"
    if "is full" in text:
        return f"no room left for the store {store.place}: {text}; free some space, or run tocsin prune"
    if isinstance(error, sqlite3.Error):
        return f"the store {store.place} refused: {text}"
    if "authentication" in text or "no password supplied" in text:
        return (
            f"the store {store.place} refuses this user: {text}; put the password into a file and name it in "
            "store.password_file"
        )
    if "connect" in text:
        return f"cannot reach the store {store.place}: {text}; is PostgreSQL up, and is store.url right?"
    return f"the store {store.place} refused: {text}"
