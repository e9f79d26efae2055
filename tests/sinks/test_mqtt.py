"""MQTT on a real mosquitto: the state of each job is retained, survives outages, and goes some time after the job."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion

from tests.conftest import unavailable
from tests.kits.outbox import message, send, verdict
from tests.services import missing
from tests.services.mosquitto import Mosquitto
from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.ports import Message
from tocsin.core.sink_settings import MqttSinkSettings
from tocsin.core.stages import Stage
from tocsin.core.verdict import Level
from tocsin.sinks.mqtt import MqttSink


@pytest.fixture
def broker() -> Iterator[Mosquitto]:
    if sentence := missing("mosquitto"):
        unavailable(sentence)
    with Mosquitto() as started:
        yield started


def sink_of(broker: Mosquitto, **more: Any) -> MqttSink:
    settings = {"kind": "mqtt", "host": "127.0.0.1", "port": broker.port, "timeout": 5, **more}
    return MqttSink("mqtt", MqttSinkSettings(**settings))


class Subscriber:
    """An independent reader of all topics."""

    def __init__(self, broker: Mosquitto, topic: str = "tocsin/#") -> None:
        self.got: list[Any] = []
        self._new = threading.Condition()
        self._client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        self._client.on_message = self._add
        subscribed = threading.Event()
        self._client.on_subscribe = lambda *_: subscribed.set()
        self._client.connect("127.0.0.1", broker.port)
        self._client.subscribe(topic, qos=1)
        self._client.loop_start()
        assert subscribed.wait(10)

    def _add(self, _client: Any, _data: Any, received: Any) -> None:
        with self._new:
            self.got.append(received)
            self._new.notify_all()

    def wait(self, number: int) -> list[Any]:
        with self._new:
            assert self._new.wait_for(lambda: len(self.got) >= number, 10), len(self.got)
        return list(self.got)

    def __enter__(self) -> "Subscriber":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def test_the_last_verdict_of_a_job_is_retained_under_its_cluster_and_id(broker: Mosquitto) -> None:
    sink = sink_of(broker)
    later = verdict(1, stage=Stage.START, level=Level.WARNING).to_json()
    messages = [message(1), message(2), Message(3, "verdict", later["id"], later)]
    assert send(sink, messages) == [1, 2, 3]
    with Subscriber(broker) as reader:  # one that comes later
        got = {one.topic: one for one in reader.wait(2)}
    assert sorted(got) == ["tocsin/lab/1", "tocsin/lab/2"]
    assert json.loads(got["tocsin/lab/1"].payload) == later
    assert got["tocsin/lab/1"].retain
    assert got["tocsin/lab/1"].properties.UserProperty == [("id", later["id"])]
    sink.close()


def test_other_messages_are_below_their_job_and_not_retained(broker: Mosquitto) -> None:
    sink = sink_of(broker)
    with Subscriber(broker) as reader:
        send(sink, [Message(1, "case", "17", {"case": 17, "job": "lab:4_2@7"})])
        [case] = reader.wait(1)
    assert (case.topic, json.loads(case.payload)["id"]) == ("tocsin/lab/4_2/case", "case-17")
    send(sink, [message(9)])
    with Subscriber(broker) as reader:
        assert [one.topic for one in reader.wait(1)] == ["tocsin/lab/9"]
    sink.close()


def test_the_state_of_an_ended_job_expires_and_that_of_others_stays(broker: Mosquitto) -> None:
    sink = sink_of(broker, keep_seconds=600)
    send(sink, [message(1, stage=Stage.END), message(2)])
    with Subscriber(broker) as reader:
        left = {one.topic: one.properties.MessageExpiryInterval for one in reader.wait(2)}
    assert left["tocsin/lab/1"] <= 600 < 29 * 86400 < left["tocsin/lab/2"]
    brief = sink_of(broker, keep_seconds=1)
    send(brief, [message(1, stage=Stage.END)])

    def topics() -> set[str]:
        send(sink, [message(3)])  # arrives last: all that is retained came before it
        with Subscriber(broker) as reader:
            while "tocsin/lab/3" not in {one.topic for one in reader.got}:
                reader.wait(len(reader.got) + 1)
            return {one.topic for one in reader.got}

    while "tocsin/lab/1" in topics():  # until mosquitto's clock has passed the second
        pass
    assert "tocsin/lab/2" in topics()
    sink.close()
    brief.close()


def test_a_broker_that_is_away_is_an_error_and_later_gets_everything(broker: Mosquitto) -> None:
    sink = sink_of(broker)
    assert send(sink, [message(1)]) == [1]
    broker.pause()
    with pytest.raises(SinkError, match=f"127.0.0.1:{broker.port}"):
        send(sink, [message(2)])
    broker.resume()
    assert send(sink, [message(2)]) == [2]
    with Subscriber(broker) as reader:
        assert sorted(one.topic for one in reader.wait(2)) == ["tocsin/lab/1", "tocsin/lab/2"]
    sink.close()


def test_a_wrong_password_is_refused_and_never_shown(tmp_path: Path) -> None:
    if sentence := missing("mosquitto"):
        unavailable(sentence)
    secret = tmp_path / "password"
    with Mosquitto(password="sw0rdfish") as broker:
        for text, good in (("sw0rdfish", True), ("0ther-fish", False)):
            secret.write_text(text)
            secret.chmod(0o600)
            sink = sink_of(broker, user="tocsin", password_file=str(secret))
            if good:
                assert send(sink, [message(1)]) == [1]
            else:
                with pytest.raises(SinkError, match="refuses: Not authorized") as refused:
                    send(sink, [message(1)])
                assert text not in str(refused.value)
            sink.close()
    secret.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        sink_of(broker, user="tocsin", password_file=str(secret))


def test_a_cluster_cannot_write_outside_of_its_topic(broker: Mosquitto) -> None:
    sink = sink_of(broker)
    for number, cluster in enumerate(("a+#", "a/b"), 1):
        document = {**verdict(number).to_json(), "job": f"{cluster}:{number}@7"}
        send(sink, [Message(number, "verdict", "x", document)])
    with Subscriber(broker) as reader:
        assert sorted(one.topic for one in reader.wait(2)) == ["tocsin/a%2B%23/1", "tocsin/verdict"]
    sink.close()
