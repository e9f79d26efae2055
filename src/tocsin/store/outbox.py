"""The outbox: messages to sinks, written together with what they report and deleted once the sink has taken them.

It is the spool on disk while a sink does not answer. It is bounded: beyond `Subscription.most` messages for one sink,
the oldest are dropped and counted.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tocsin.core.ports import Message, Receipt, Subscription
from tocsin.store.bulk import insert_new
from tocsin.store.database import Store
from tocsin.store.tables import outbox, sink_states

__all__ = [
    "SinkState",
    "Subscriptions",
    "acknowledge",
    "discard_others",
    "drop_oldest",
    "put",
    "set_problem",
    "states",
    "waiting",
]

Subscriptions = Mapping[str, Subscription]
"""What each sink takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkState:
    """Delivery of a sink's messages."""

    sent: int = 0
    refused: int = 0
    """Messages that it will never take."""
    dropped: int = 0
    """Messages dropped because too many were queued."""
    last: int = 0
    """When it last took some; 0: never."""
    problem: str = ""
    """Why it does not answer; empty: it does."""
    since: int = 0
    """When that problem began."""
    waiting: int = 0


def put(
    connection: sa.Connection,
    sinks: Subscriptions,
    *,
    kind: str,
    reference: str,
    document: dict[str, Any],
) -> None:
    """Add a message to every sink that takes it; the same one is never added twice."""
    for sink, subscription in sinks.items():
        if subscription.takes(kind, document):
            row = {"sink": sink, "kind": kind, "reference": reference, "document": document}
            insert_new(connection, outbox, row)


def drop_oldest(connection: sa.Connection, sinks: Subscriptions) -> None:
    """Drop the excess, at the end of a transaction that has put messages; it reads as many rows as are queued."""
    for sink, subscription in sinks.items():
        mine = outbox.c.sink == sink
        last = connection.execute(
            sa.select(outbox.c.id).where(mine).order_by(outbox.c.id.desc()).offset(subscription.most).limit(1)
        ).scalar()
        if last is not None:
            gone = connection.execute(sa.delete(outbox).where(mine, outbox.c.id <= last)).rowcount
            _change(connection, sink, dropped=sink_states.c.dropped + gone)


def waiting(store: Store, sink: str, limit: int) -> list[Message]:
    """The oldest messages that the sink has not taken."""
    query = sa.select(outbox).where(outbox.c.sink == sink).order_by(outbox.c.id).limit(limit)
    with store.reading() as connection:
        return [
            Message(row.id, row.kind, row.reference, row.document) for row in connection.execute(query).all()
        ]


def acknowledge(store: Store, sink: str, receipt: Receipt, now: float) -> None:
    """Delete messages that the sink has taken or will never take."""
    # SQLite may reuse the number of a deleted message, so the reference is compared, too
    rows = [{"number": message.id, "same": message.reference} for message in receipt.messages]
    if not rows:
        return
    counter = sink_states.c.refused if receipt.refused else sink_states.c.sent
    with store.writing() as connection:
        this = (outbox.c.id == sa.bindparam("number"), outbox.c.reference == sa.bindparam("same"))
        connection.execute(sa.delete(outbox).where(outbox.c.sink == sink, *this), rows)
        answers = {"last": int(now), "problem": "", "since": 0}
        _change(connection, sink, **answers, **{counter.name: counter + len(rows)})


def set_problem(store: Store, sink: str, problem: str, now: float) -> None:
    """Record that the sink does not answer, and why; this ends when it takes a message."""
    with store.writing() as connection:
        before = connection.execute(
            sa.select(sink_states.c.problem, sink_states.c.since).where(sink_states.c.sink == sink)
        ).first()
        since = before.since if before and before.problem else int(now)
        _change(connection, sink, problem=problem, since=since)


def states(store: Store, sinks: Iterable[str]) -> dict[str, SinkState]:
    """The state of each of these sinks."""
    with store.reading() as connection:
        number = sa.select(outbox.c.sink, sa.func.count().label("number")).group_by(outbox.c.sink)
        waits = {row.sink: row.number for row in connection.execute(number)}
        known: dict[str, dict[str, Any]] = {
            row["sink"]: {name: value for name, value in row.items() if name != "sink"}
            for row in connection.execute(sa.select(sink_states)).mappings()
        }
    return {sink: SinkState(**known.get(sink, {}), waiting=waits.get(sink, 0)) for sink in sinks}


def discard_others(store: Store, sinks: Collection[str]) -> None:
    """Delete the messages of sinks that are no longer configured."""
    with store.writing() as connection:
        connection.execute(sa.delete(outbox).where(outbox.c.sink.not_in(list(sinks))))


def _change(connection: sa.Connection, sink: str, **values: Any) -> None:
    zeros: dict[str, Any] = dict.fromkeys(("sent", "refused", "dropped", "last", "since"), 0)
    insert_new(connection, sink_states, {"sink": sink, "problem": "", **zeros})
    connection.execute(sa.update(sink_states).where(sink_states.c.sink == sink).values(values))
