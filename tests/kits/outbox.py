"""Verdicts in an outbox, and what sinks take of them."""

from typing import Any

from tocsin.core.decision import Decision
from tocsin.core.errors import SinkError
from tocsin.core.ports import Message, Receipt, Sink, Subscription
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level, Verdict
from tocsin.store.database import Store
from tocsin.store.decisions import record


def takes(*kinds: str, levels: tuple[str, ...] = tuple(Level), most: int = 100_000) -> Subscription:
    return Subscription(kinds=kinds or ("verdict",), levels=levels, most=most)


def verdict(number: int, **more: Any) -> Verdict:
    given = {"stage": Stage.SUBMIT, "at": 9, "known_until": 7, "level": Level.OK, **more}
    return Verdict(job=f"lab:{number}@7", **given)


def message(number: int, **more: Any) -> Message:
    document = verdict(number, **more).to_json()
    return Message(number, "verdict", document["id"], document)


def give(store: Store, sink: str, *numbers: int, most: int = 100_000, **more: Any) -> None:
    """Store verdicts on these jobs, with messages to the sink."""
    record(store, Decision(verdicts=[verdict(n, **more) for n in numbers]), {sink: takes(most=most)})


def try_to_send(sink: Sink, messages: list[Message]) -> tuple[list[Receipt], str]:
    """The receipts until the sink gave up, and why it did."""
    receipts: list[Receipt] = []
    try:
        for receipt in sink.send(messages):
            receipts.append(receipt)  # noqa: PERF402  # those before an error count
    except SinkError as error:
        return receipts, str(error)
    return receipts, ""


def send(sink: Sink, messages: list[Message]) -> list[int]:
    """The numbers of the messages that the sink has taken or refused."""
    return [message.id for receipt in sink.send(messages) for message in receipt.messages]
