"""The outbox: messages to sinks, written with what they report and deleted when the sink has taken them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from tocsin.core.ports import Message
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import outbox

__all__ = ["Subscriptions", "acknowledge", "discard_others", "put", "waiting"]

Subscriptions = Mapping[str, Collection[str]]
"""The kinds of messages that each sink takes."""


def put(
    connection: sa.Connection,
    sinks: Subscriptions,
    *,
    kind: str,
    reference: str,
    document: dict[str, Any],
) -> None:
    """Add a message to every sink that takes this kind; the same one is never added twice."""
    for sink, kinds in sinks.items():
        if kind in kinds:
            row = {"sink": sink, "kind": kind, "reference": reference, "document": document}
            insert_new(connection, outbox, row)


def waiting(store: Store, sink: str, limit: int) -> list[Message]:
    """The oldest messages that the sink has not taken."""
    query = sa.select(outbox).where(outbox.c.sink == sink).order_by(outbox.c.id).limit(limit)
    with store.reading() as connection:
        return [
            Message(row.id, row.kind, row.reference, row.document) for row in connection.execute(query).all()
        ]


def acknowledge(store: Store, messages: Iterable[Message]) -> None:
    """The sink has taken these."""
    if rows := [{"number": message.id} for message in messages]:
        with store.writing() as connection:
            connection.execute(sa.delete(outbox).where(outbox.c.id == sa.bindparam("number")), rows)


def discard_others(store: Store, sinks: Collection[str]) -> None:
    """Delete the messages of sinks that are not configured any more."""
    with store.writing() as connection:
        connection.execute(sa.delete(outbox).where(outbox.c.sink.not_in(list(sinks))))
