"""Job events from Kafka, as a member of a consumer group; offsets are committed after the caller has stored the jobs."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tocsin.core.frames import SCHEMA
from tocsin.core.intake import Rejects, valid_jobs
from tocsin.core.settings import KafkaSettings
from tocsin.sources.job_events import JobEvent, Unreadable, read_event
from tocsin.sources.kafka_access import client_properties, require_library

if TYPE_CHECKING:
    from confluent_kafka import Consumer

__all__ = ["Events", "KafkaJobs", "to_frame"]

BATCH = 500


@dataclass(frozen=True, slots=True)
class Events:
    """Records of jobs in the order of their partitions; a job may occur several times."""

    jobs: pl.DataFrame
    scripts: dict[int, str]
    """By the row of the job."""
    read: int
    """Records, including skipped ones."""


class KafkaJobs:
    """The job events of one cluster. Unreadable records are counted in `rejects` and skipped."""

    def __init__(self, name: str, topics: Iterable[str], settings: KafkaSettings) -> None:
        require_library()
        self.name = name
        self.rejects = Rejects()
        self.others = 0
        """Records of other clusters."""
        self._topics = list(topics)
        self._properties = client_properties(
            settings,
            **{
                "group.id": f"{settings.group}-{name}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "session.timeout.ms": 6000,
                "topic.metadata.refresh.interval.ms": 10_000,
                "queued.max.messages.kbytes": 16_384,
            },
        )
        self._consumer: Consumer | None = None
        self._ends: set[tuple[str, int]] = set()
        self._problem = ""

    @property
    def caught_up(self) -> bool:
        """Whether everything in all partitions of this member has been read."""
        assigned = self._consumer.assignment() if self._consumer else []
        return bool(assigned) and all((one.topic, one.partition) in self._ends for one in assigned)

    @property
    def problem(self) -> str:
        """Why nothing is received; empty if the brokers answer."""
        from confluent_kafka import KafkaException

        if self._problem:
            with suppress(KafkaException):
                self._open().list_topics(self._topics[0], timeout=1.0)
                self._problem = ""
        return self._problem

    def poll(self, seconds: float) -> Events:
        """The records that have arrived, at most `BATCH`; waits this long if there are none."""
        consumer = self._open()
        records: list[JobEvent] = []
        read = 0
        for message in consumer.consume(BATCH, seconds):
            if error := message.error():
                self._note_error(message, error)
                continue
            read += 1
            self._ends.discard((message.topic(), message.partition()))
            with suppress(_Skipped):
                records.append(self._read(message))
        return self._events(records, read)

    def commit(self) -> None:
        """Commit what was polled, once it is stored. If this fails, it is read again, which does no harm."""
        from confluent_kafka import KafkaException

        try:
            self._open().commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() != "_NO_OFFSET":
                self._note_problem(error.args[0])

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _open(self) -> "Consumer":
        from confluent_kafka import Consumer

        if self._consumer is None:
            self._consumer = Consumer({**self._properties, "error_cb": self._note_problem})
            self._consumer.subscribe(self._topics)
        return self._consumer

    def _read(self, message: Any) -> JobEvent:
        try:
            record = read_event(message.value(), self.name)
        except Unreadable as error:
            self.rejects.add(str(error), [message.offset()], f"{message.topic()}/{message.partition()}")
            raise _Skipped from None
        if record is None:
            self.others += 1
            raise _Skipped
        return record

    def _events(self, records: list[JobEvent], read: int) -> Events:
        jobs = valid_jobs(to_frame(records), self.rejects)
        scripts = {
            place: script
            for place, row in enumerate(jobs["row"].to_list())
            if (script := records[row].script) is not None
        }
        return Events(jobs.drop("row"), scripts, read)

    def _note_error(self, message: Any, error: Any) -> None:
        if error.name() == "_PARTITION_EOF":
            self._ends.add((message.topic(), message.partition()))
        else:
            self._note_problem(error)

    def _note_problem(self, error: Any) -> None:
        self._problem = error.str()


def to_frame(records: list[JobEvent]) -> pl.DataFrame:
    """The jobs of these records, each with its `row` in the list."""
    rows = [{**dict.fromkeys(SCHEMA), **record.fields, "row": row} for row, record in enumerate(records)]
    return pl.DataFrame(rows, schema={**SCHEMA, "row": pl.Int64()}, orient="row")


class _Skipped(Exception):
    """The record is counted, but holds no job for us."""
