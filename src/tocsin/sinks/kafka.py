"""Kafka: each message in the topic of its kind, keyed by its job, acknowledged when all replicas have it."""

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tocsin.core.errors import SinkError
from tocsin.core.ports import Message, Receipt
from tocsin.core.settings import KafkaSettings
from tocsin.core.sink_settings import KafkaSinkSettings
from tocsin.sinks.body import job_of, message_id, payload
from tocsin.sources.kafka_access import client_properties, require_library

if TYPE_CHECKING:
    from confluent_kafka import Producer

__all__ = ["KafkaSink"]


class KafkaSink:
    """An idempotent producer. A repeated message has the same id and content, so it does no harm."""

    batch = 1000

    def __init__(self, name: str, access: KafkaSettings, settings: KafkaSinkSettings) -> None:
        require_library()
        self.name = name
        self._settings = settings
        self._properties = client_properties(
            access,
            **{
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 5,
                "message.timeout.ms": max(settings.timeout, 1) * 1000,
            },
        )
        self._producer: Producer | None = None
        self._last_error = ""

    def due(self, now: float) -> bool:  # noqa: ARG002  # at any time
        return True

    def close(self) -> None:
        """Drop undelivered messages, which the outbox still has."""
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        reports: dict[int, Any] = {}
        producer = self._open()
        for message in messages:
            self._produce(producer, message, reports)
        end = time.monotonic() + self._settings.timeout + 5  # librdkafka gives up before that
        while len(reports) < len(messages) and time.monotonic() < end:
            producer.flush(0.5)
        taken = list(takewhile(lambda message: _settled(reports.get(message.id, self)), messages))
        yield Receipt([message for message in taken if reports[message.id] is None])
        for message in taken:
            if reports[message.id] is not None:
                yield Receipt([message], reports[message.id].str())
        if len(taken) < len(messages):
            self.close()  # so that nothing from this attempt arrives later, out of order
            error = reports.get(messages[len(taken)].id)
            why = self._last_error or (error.str() if error else f"no answer in {self._settings.timeout} s")
            raise SinkError(f"Kafka does not accept messages: {why}")
        self._last_error = ""

    def _produce(self, producer: "Producer", message: Message, reports: dict[int, Any]) -> None:
        from confluent_kafka import KafkaException

        def report(error: Any, _: Any) -> None:
            reports[message.id] = error

        job = job_of(message)
        try:
            producer.produce(
                self._settings.topic.replace("{kind}", message.kind),
                payload(message).encode(),
                str(job) if job else message_id(message),
                headers={"kind": message.kind, "id": message_id(message)},
                on_delivery=report,
            )
        except KafkaException as error:
            reports[message.id] = error.args[0]

    def _open(self) -> "Producer":
        from confluent_kafka import Producer

        if self._producer is None:
            self._producer = Producer({**self._properties, "error_cb": self._note})
        return self._producer

    def _note(self, error: Any) -> None:
        self._last_error = error.str()


def _settled(report: Any) -> bool:
    """Whether a message was delivered (the report is None), or is itself the problem."""
    from confluent_kafka import KafkaError

    return report is None or (
        isinstance(report, KafkaError)
        and report.code()
        in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_MSG_SIZE, KafkaError._INVALID_ARG)
    )
