"""Kafka as a sink: keyed by job, in order, and complete although the connection is cut again and again."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.kits.outbox import message, send, verdict
from tests.services.daemons import await_true
from tests.services.kafka import CutProxy, MockKafka, read_all
from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.ports import Message
from tocsin.core.settings import KafkaSettings
from tocsin.core.sink_settings import KafkaSinkSettings
from tocsin.core.stages import Stage
from tocsin.sinks.kafka import KafkaSink
from tocsin.sources.kafka_access import client_properties


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockKafka]:
    with MockKafka() as broker:
        yield broker


def sink_of(address: str, topic: str, timeout: int = 10) -> KafkaSink:
    settings = KafkaSinkSettings(kind="kafka", topic=topic, timeout=timeout)
    return KafkaSink("kafka", KafkaSettings(brokers=address), settings)


class Reader:
    """Collects the records of a topic."""

    def __init__(self, address: str, topic: str) -> None:
        self.got: list[Any] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=read_all, args=(address, topic, self._stop, self.got))
        self._thread.start()

    def wait(self, number: int) -> list[Any]:
        await_true(
            f"{number} records were not read",
            lambda: len(self.got) >= number,
            30,
            lambda: f"{len(self.got)} were",
        )
        return list(self.got)

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def test_verdicts_are_keyed_by_job_and_carry_their_id(kafka: MockKafka) -> None:
    sink = sink_of(kafka.address, "first.{kind}")
    assert send(sink, [message(1), message(2)]) == [1, 2]
    with Reader(kafka.address, "first.verdict") as reader:
        got = {record.key().decode(): record for record in reader.wait(2)}
    assert sorted(got) == ["lab:1@7", "lab:2@7"]
    assert json.loads(got["lab:1@7"].value()) == verdict(1).to_json()
    assert dict(got["lab:1@7"].headers()) == {
        "kind": b"verdict",
        "id": verdict(1).to_json()["id"].encode(),
    }
    sink.close()


def test_the_verdicts_of_one_job_stay_in_order(kafka: MockKafka) -> None:
    sink = sink_of(kafka.address, "ordered")
    stages = [Stage.SUBMIT, Stage.START, Stage.EARLY, Stage.END]
    documents = [verdict(job, stage=stage).to_json() for stage in stages for job in range(50)]
    send(sink, [Message(n, "verdict", document["id"], document) for n, document in enumerate(documents)])
    with Reader(kafka.address, "ordered") as reader:
        got = [json.loads(record.value()) for record in reader.wait(200)]
    for job in range(50):
        assert [one["stage"] for one in got if one["job"] == f"lab:{job}@7"] == stages
    sink.close()


def test_a_message_that_is_too_long_is_refused_and_the_others_arrive(kafka: MockKafka) -> None:
    sink = sink_of(kafka.address, "long")
    documents = [{**verdict(n).to_json(), "name": "x" * (n == 1) * 2_000_000} for n in range(3)]
    messages = [Message(n, "verdict", document["id"], document) for n, document in enumerate(documents)]
    receipts = list(sink.send(messages))
    assert [(m.id, bool(receipt.refused)) for receipt in receipts for m in receipt.messages] == [
        (0, False),
        (2, False),
        (1, True),
    ]
    sink.close()


def send_until_taken(sink: KafkaSink, one: Message) -> list[int]:
    """As a courier does."""
    while True:
        with suppress(SinkError):
            return send(sink, [one])


def test_a_broker_behind_a_cut_line_gets_every_message_when_the_line_is_mended(kafka: MockKafka) -> None:
    with CutProxy(kafka.address) as proxy, Reader(kafka.address, "cut") as reader:
        sink = sink_of(proxy.address, "cut", timeout=2)
        sent, number = [], 0
        for _ in range(3):
            sent += send_until_taken(sink, message(number))
            number += 1
            proxy.cut()
            with pytest.raises(SinkError, match="Kafka does not accept messages"):
                send(sink, [message(number)])
            proxy.mend()
            sent += send_until_taken(sink, message(number))
            number += 1
        await_true("the topic is incomplete", lambda: len({r.key() for r in reader.got}) == number, 30)
        sink.close()
    assert sent == list(range(6))
    contents = {(record.key(), record.value()) for record in reader.got}
    assert len(contents) == number  # a repeated record is the same to the byte


def test_a_password_is_read_from_its_file_and_refused_if_others_can_read_it(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("sw0rdfish\n")
    secret.chmod(0o600)
    access = KafkaSettings(brokers="b:1", user="tocsin", password_file=str(secret), tls=True)
    properties = client_properties(access)
    assert (properties["sasl.password"], properties["security.protocol"]) == ("sw0rdfish", "SASL_SSL")
    secret.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        client_properties(access)
