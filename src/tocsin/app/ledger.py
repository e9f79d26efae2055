"""The history of a cluster, from the cache or the store."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import StoreError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.history.ledger import Ledger
    from tocsin.store.database import Store

__all__ = ["open_history", "past_jobs"]

SAVE_EVERY = 3600


@contextmanager
def open_history(app: App, cluster: str) -> "Iterator[tuple[Ledger, Callable[[], None]]]":
    """The cluster's history from the cache or the store; saved to the cache every hour and at the end."""
    from tocsin.history.snapshot import open_ledger, save_ledger
    from tocsin.store import watching

    folder = app.home.cache / "history" / cluster
    folder.mkdir(parents=True, exist_ok=True)
    saved = time.monotonic()

    def fingerprint(until: int) -> str:
        return watching.fingerprint(app.store, cluster, until)

    def keep() -> None:
        nonlocal saved
        if time.monotonic() - saved >= SAVE_EVERY:
            save_ledger(folder, ledger, fingerprint)
            saved = time.monotonic()

    ledger = open_ledger(folder, lambda since: past_jobs(app.store, cluster, since), fingerprint)
    try:
        yield ledger, keep
    finally:
        with suppress(StoreError, OSError):  # it is a cache: the next start rebuilds it
            save_ledger(folder, ledger, fingerprint)


def past_jobs(store: "Store", cluster: str, since: int) -> "pl.DataFrame":
    """Jobs alive at this instant or later, without pending arrays: their tasks count as they start."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    jobs = load(store, Filter(clusters=[cluster], since=since or None))
    return jobs.filter(pl.col("array").is_null() | pl.col("outcome").is_not_null())
