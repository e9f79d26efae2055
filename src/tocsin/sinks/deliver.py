"""Delivers the messages of the outbox to a sink, in order."""

import time
from collections.abc import Callable
from contextlib import closing

from tocsin.core.errors import SinkError, StoreError
from tocsin.core.ports import Message, Sink
from tocsin.store.database import Store
from tocsin.store.locks import locked
from tocsin.store.outbox import acknowledge, waiting

__all__ = ["Busy", "deliver"]


class Busy(Exception):
    """Another process is sending to this sink, and will also send our messages."""


def deliver(
    store: Store,
    sink: Sink,
    *,
    refused: Callable[[Message, str], None] = lambda _message, _why: None,
    clock: Callable[[], float] = time.time,
) -> str | None:
    """Send queued messages, if due; returns why some could not be sent.

    Two processes never send at the same time: one of them gets Busy. `refused` is called for messages that the sink
    will never take.
    """
    with locked(store, f"sink-{sink.name}") as alone:
        if not alone:
            raise Busy
        while sink.due(clock()) and (messages := waiting(store, sink.name, sink.batch)):
            taken = 0
            try:
                with closing(sink.send(messages)) as receipts:  # type: ignore[type-var]  # a generator
                    for receipt in receipts:
                        acknowledge(store, sink.name, receipt, clock())
                        taken += len(receipt.messages)
                        if receipt.refused:
                            for message in receipt.messages:
                                refused(message, receipt.refused)
            except (SinkError, StoreError) as error:
                return str(error)
            if taken < len(messages):  # the rest is not due
                break
    return None
