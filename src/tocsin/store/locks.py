"""Locks of a store that are released when their process ends, even if it is killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote
from zlib import crc32

import sqlalchemy as sa

from tocsin.core.errors import StoreError
from tocsin.store.database import Store, readable_errors

__all__ = ["locked"]

_KIND = 0x746F6373  # "tocs"


@contextmanager
def locked(store: Store, name: str, *, wait: bool = False) -> Iterator[bool]:
    """Whether this process holds the lock of that name; with `wait`, waits until it does."""
    with (_locked_file if store.embedded else _locked_session)(store, name, wait) as held:
        yield held


@contextmanager
def _locked_file(store: Store, name: str, wait: bool) -> Iterator[bool]:
    path = f"{store.engine.url.database}.{quote(name, safe='')}.lock"
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreError(f"cannot open the lock file {path} ({error.strerror}); run as its owner") from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(file)


@contextmanager
def _locked_session(store: Store, name: str, wait: bool) -> Iterator[bool]:
    """PostgreSQL releases the lock when the connection ends."""
    ask = sa.func.pg_advisory_lock if wait else sa.func.pg_try_advisory_lock
    with readable_errors(store), store.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        try:
            yield (
                connection.execute(sa.select(ask(_KIND, crc32(name.encode()) - 2**31))).scalar() is not False
            )
        finally:
            connection.invalidate()
