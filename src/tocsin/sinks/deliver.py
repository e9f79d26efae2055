"""Deliver the messages of the outbox to a sink, in order."""

from tocsin.core.errors import SinkError
from tocsin.core.ports import Sink
from tocsin.store.database import Store
from tocsin.store.locks import locked
from tocsin.store.outbox import acknowledge, waiting

__all__ = ["BATCH", "deliver"]

BATCH = 1000
"""Messages that a killed process may have sent without acknowledging them."""


def deliver(store: Store, sink: Sink) -> str | None:
    """Send all that waits; returns why some of it could not be sent. Two processes never send the same message."""
    with locked(store, f"sink-{sink.name}", wait=True):
        while messages := waiting(store, sink.name, BATCH):
            try:
                sink.send(messages)
            except SinkError as error:
                return str(error)
            acknowledge(store, messages)
    return None
