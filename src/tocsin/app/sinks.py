"""The sinks of the settings: opens them, and delivers to each in a thread of its own."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import SettingsError
from tocsin.core.sink_settings import (
    KafkaSinkSettings,
    LogSinkSettings,
    MailSinkSettings,
    MqttSinkSettings,
    SinkSettings,
    WebhookSinkSettings,
)

if TYPE_CHECKING:
    from tocsin.core.ports import Sink
    from tocsin.sinks.courier import Courier
    from tocsin.store.database import Store
    from tocsin.store.outbox import Subscriptions

__all__ = ["Sinks", "check_sinks", "open_sinks", "subscriptions"]

GRACE = 5.0
"""Seconds for sinks to take queued messages when the process ends; the rest stays in the outbox."""


class Sinks:
    """Open sinks, and the messages in the outbox of a store that each takes."""

    def __init__(self, store: "Store", sinks: "list[Sink]", taken: "Subscriptions") -> None:
        self._store, self._sinks = store, sinks
        self.subscriptions = taken
        """For code that writes messages."""

    @contextmanager
    def delivering(self, notify: Callable[[str], None]) -> Iterator[Callable[[], None]]:
        """Deliver while the block runs; it gets a function to call after new messages were written."""
        from tocsin.sinks.courier import Courier

        couriers = [Courier(self._store, sink, notify) for sink in self._sinks]

        def wake() -> None:
            for courier in couriers:
                courier.wake()

        with ExitStack() as stack:
            stack.callback(_end, couriers)
            for courier in couriers:
                courier.start()
            yield wake


def _end(couriers: "list[Courier]") -> None:
    end = time.monotonic() + GRACE
    for courier in couriers:
        courier.stop()
    for courier in couriers:
        courier.join(max(0.0, end - time.monotonic()))


def open_sinks(app: App) -> Sinks:
    """All sinks of the settings; messages of removed sinks are discarded."""
    from tocsin.store.outbox import discard_others

    found = app.settings.sinks
    taken = subscriptions(app)
    sinks = [_open(app, name, settings) for name, settings in found.items()]
    discard_others(app.store, list(found))
    return Sinks(app.store, sinks, taken)


def subscriptions(app: App) -> "Subscriptions":
    """What each sink of the settings takes."""
    return {name: settings.subscription(name) for name, settings in app.settings.sinks.items()}


def check_sinks(app: App) -> None:
    """Raise the error of the first sink whose settings are invalid; nothing is opened."""
    for name, settings in app.settings.sinks.items():
        settings.subscription(name)
        for key in _needed(app, settings):
            raise SettingsError(f"sinks.{name} is of the kind {settings.kind} and needs {key}; set it")
        if isinstance(settings, LogSinkSettings) and not Path(settings.file).parent.is_dir():
            raise SettingsError(
                f'sinks.{name}.file is "{settings.file}", but the folder {Path(settings.file).parent} does not exist; '
                "create it"
            )
        if isinstance(settings, MailSinkSettings):
            _mail(app, name, settings)


def _needed(app: App, settings: SinkSettings) -> Iterator[str]:
    """The required settings that a sink lacks."""
    match settings:
        case LogSinkSettings(file=""):
            yield "file"
        case KafkaSinkSettings() if not app.settings.kafka.brokers:
            yield "kafka.brokers"
        case MqttSinkSettings(host=""):
            yield "host"
        case WebhookSinkSettings(url="", url_file=""):
            yield "url or url_file"
        case MailSinkSettings(sender=""):
            yield "sender"
        case MailSinkSettings(address="", address_file=""):
            yield "address or address_file"


def _open(app: App, name: str, settings: SinkSettings) -> "Sink":
    for key in _needed(app, settings):
        raise SettingsError(f"sinks.{name} is of the kind {settings.kind} and needs {key}; set it")
    match settings:
        case LogSinkSettings():
            from tocsin.sinks.log import Log

            largest = settings.megabytes * 1024**2
            return Log(Path(settings.file), largest=largest, files=settings.files, name=name)
        case KafkaSinkSettings():
            from tocsin.sinks.kafka import KafkaSink

            return KafkaSink(name, app.settings.kafka, settings)
        case MqttSinkSettings():
            from tocsin.sinks.mqtt import MqttSink

            return MqttSink(name, settings)
        case WebhookSinkSettings():
            from tocsin.sinks.webhook import WebhookSink

            return WebhookSink(name, settings)
        case MailSinkSettings():
            return _mail(app, name, settings)
    raise AssertionError(f"the settings know no kind {settings.kind}")


def _mail(app: App, name: str, settings: MailSinkSettings) -> "Sink":
    from tocsin.sinks.mail import MailSink

    return MailSink(name, settings, spool=app.home.prepare().spool / name, zone=app.zone())
