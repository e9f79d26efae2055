"""MQTT 5: the last verdict of each job as a retained message, and other messages below it.

The broker clears a retained message when it expires: that of an ended job soon, any other after `expire_days`.
"""

import time
from collections.abc import Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tocsin.core.errors import SettingsError, SinkError
from tocsin.core.ports import Message, Receipt
from tocsin.core.sink_settings import MqttSinkSettings
from tocsin.core.stages import Stage
from tocsin.sinks.body import job_of, message_id, payload
from tocsin.sources.secrets import read_secret

if TYPE_CHECKING:
    from paho.mqtt.client import Client

__all__ = ["MqttSink"]

_AT_LEAST_ONCE = 1
_KEEPALIVE = 30


class MqttSink:
    """Connects when there is something to send, and stays connected; reconnects after an error."""

    batch = 100

    def __init__(self, name: str, settings: MqttSinkSettings) -> None:
        try:
            import paho.mqtt.client  # noqa: F401
        except ImportError:
            raise SettingsError(
                f"sinks.{name} needs the library paho-mqtt; install it with: pip install 'tocsin[mqtt]'"
            ) from None
        self.name = name
        self._settings = settings
        self._port = settings.port or (8883 if settings.tls else 1883)
        self._password = read_secret(settings.password_file) if settings.password_file else None
        self._client: Client | None = None

    def due(self, now: float) -> bool:  # noqa: ARG002  # at any time
        return True

    def close(self) -> None:
        if self._client is not None:
            self._client.disconnect()
            self._client.loop_stop()
            self._client = None

    def send(self, messages: Sequence[Message]) -> Iterator[Receipt]:
        client = self._connected()
        sent = [self._publish(client, message) for message in messages]
        end = time.monotonic() + self._settings.timeout
        try:
            for message, info in zip(messages, sent, strict=True):
                # the loss of the connection may be noticed a little later
                while not info.is_published():
                    if not client.is_connected() or time.monotonic() > end:
                        raise SinkError(f"the MQTT broker {self._place} did not acknowledge a message")
                    info.wait_for_publish(0.2)
                yield Receipt([message])
        except (SinkError, RuntimeError, ValueError) as error:
            self.close()  # with its queue: unacknowledged messages are sent again from the outbox
            raise SinkError(str(error)) from None

    @property
    def _place(self) -> str:
        return f"{self._settings.host}:{self._port}"

    def _publish(self, client: "Client", message: Message) -> Any:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        state = message.kind == "verdict"
        ended = state and message.document.get("stage") == Stage.END
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho's own
        properties.ContentType = "application/json"
        properties.UserProperty = ("id", message_id(message))
        properties.MessageExpiryInterval = min(
            self._settings.keep_seconds if ended else self._settings.expire_days * 86400, 2**32 - 1
        )
        return client.publish(
            self._topic(message), payload(message), qos=_AT_LEAST_ONCE, retain=state, properties=properties
        )

    def _topic(self, message: Message) -> str:
        """PREFIX/CLUSTER/JOB for verdicts, followed by the kind for other messages. A requeued job has the same topic."""
        job = job_of(message)
        if job is None:
            return f"{self._settings.topic}/{message.kind}"
        task = "" if job.task is None else f"_{job.task}"
        place = f"{self._settings.topic}/{quote(job.cluster, safe='')}/{job.job_id}{task}"
        return place if message.kind == "verdict" else f"{place}/{message.kind}"

    def _connected(self) -> "Client":
        if self._client is not None and self._client.is_connected():
            return self._client
        self.close()
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion

        answer = Event()
        refusals: list[str] = []

        def connected(_client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
            if reason.is_failure:
                refusals.append(str(reason))
            answer.set()

        client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5, reconnect_on_failure=False)
        client.connect_timeout = self._settings.timeout
        client.on_connect = connected
        if self._settings.user:
            client.username_pw_set(self._settings.user, self._password)
        try:
            if self._settings.tls:
                client.tls_set(ca_certs=self._settings.ca_file or None)
            client.connect(self._settings.host, self._port, keepalive=_KEEPALIVE)
        except (OSError, ValueError) as error:
            raise SinkError(f"the MQTT broker {self._place} cannot be reached: {error}") from None
        client.loop_start()
        if not answer.wait(self._settings.timeout) or refusals:
            client.loop_stop()
            why = refusals[0] if refusals else f"no answer in {self._settings.timeout} s"
            raise SinkError(f"the MQTT broker {self._place} refuses: {why}")
        self._client = client
        return client
