"""The history of a cluster, from the cache or the store."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import StoreError
from tocsin.core.ids import CLUSTER

if TYPE_CHECKING:
    import polars as pl

    from tocsin.history.ledger import Ledger
    from tocsin.store.database import Store

__all__ = ["open_history", "past_jobs", "read_history"]

SAVE_EVERY = 3600


@contextmanager
def open_history(app: App, cluster: str) -> "Iterator[tuple[Ledger, Callable[[], None]]]":
    """The cluster's history from the cache or the store; saved to the cache every hour and at the end."""
    from tocsin.history.snapshot import save_ledger

    folder = _folder(app, cluster)
    folder.mkdir(parents=True, exist_ok=True)
    saved = time.monotonic()

    def save() -> None:
        save_ledger(folder, ledger, _fingerprint(app, cluster))

    def keep() -> None:
        nonlocal saved
        if time.monotonic() - saved >= SAVE_EVERY:
            save()
            saved = time.monotonic()

    ledger = read_history(app, cluster)
    try:
        yield ledger, keep
    finally:
        with suppress(StoreError, OSError):  # only a cache: the next start rebuilds it
            save()


def read_history(app: App, cluster: str) -> "Ledger":
    """The cluster's history from the cache or the store, for a process that does not follow the cluster itself."""
    from tocsin.history.snapshot import open_ledger

    return open_ledger(
        _folder(app, cluster),
        lambda since: past_jobs(app.store, cluster, since),
        _fingerprint(app, cluster),
    )


def _folder(app: App, cluster: str) -> Path:
    if not re.fullmatch(CLUSTER, cluster):  # in a store from somebody else
        raise StoreError(f'"{cluster[:80]}" cannot be the name of a cluster; was this store changed by hand?')
    return app.home.cache / "history" / cluster


def _fingerprint(app: App, cluster: str) -> Callable[[int], str]:
    from tocsin.store import watching

    return lambda until: watching.fingerprint(app.store, cluster, until)


def past_jobs(store: "Store", cluster: str, since: int) -> "pl.DataFrame":
    """Jobs alive at this instant or later, without pending arrays, whose tasks count as they start."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    jobs = load(store, Filter(clusters=[cluster], since=since or None))
    return jobs.filter(pl.col("array").is_null() | pl.col("outcome").is_not_null())
