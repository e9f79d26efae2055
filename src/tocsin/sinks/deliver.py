"""Deliver the messages of the outbox to a sink, in order."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tocsin.core.errors import SinkError
from tocsin.core.ports import Sink
from tocsin.store.database import Store
from tocsin.store.outbox import acknowledge, waiting

__all__ = ["BATCH", "deliver"]

BATCH = 1000
"""Messages that a killed process may have sent without acknowledging them."""


def deliver(store: Store, sink: Sink, folder: Path) -> str | None:
    """Send all that waits; returns why some of it could not be sent. Lock files are kept in `folder`."""
    with _locked(folder / f"sink-{sink.name}.lock"):
        while messages := waiting(store, sink.name, BATCH):
            try:
                sink.send(messages)
            except SinkError as error:
                return str(error)
            acknowledge(store, messages)
    return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time: two would send the same messages."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
