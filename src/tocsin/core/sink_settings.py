"""The settings of sinks: those that all have, and those of each kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from tocsin.core.errors import SettingsError
from tocsin.core.setting import setting

if TYPE_CHECKING:
    from tocsin.core.ports import Subscription

__all__ = [
    "MESSAGES",
    "SINK_KINDS",
    "KafkaSinkSettings",
    "LogSinkSettings",
    "MailSinkSettings",
    "MqttSinkSettings",
    "SinkSettings",
    "WebhookSinkSettings",
]

MESSAGES = ("verdict", "case", "action", "job")
"""The kinds of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """Where messages go; NAME is yours to choose."""

    kind: str = setting("", "log, kafka, mqtt, webhook or mail")
    messages: str = setting(
        "verdict,case,action",
        "kinds of messages to send, separated by commas: verdict, case, action, job (job events)",
    )
    levels: str = setting("", "levels of the verdicts to send, separated by commas; empty: all")
    most_waiting: int = setting(
        100_000, "messages to keep while it does not answer; beyond that, the oldest are dropped"
    )

    def subscription(self, name: str) -> "Subscription":
        """Which messages the sink of this name takes."""
        from tocsin.core.ports import Subscription  # lazily: every command imports the settings
        from tocsin.core.verdict import Level

        return Subscription(
            kinds=_words(self.messages, MESSAGES, f"sinks.{name}.messages"),
            levels=_words(self.levels, tuple(Level), f"sinks.{name}.levels") or frozenset(Level),
            most=max(self.most_waiting, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSinkSettings(SinkSettings):
    messages: str = setting("verdict", SinkSettings.__dataclass_fields__["messages"].metadata["doc"])
    file: str = setting("", "file for messages, one line of JSON each")
    megabytes: int = setting(10, "size in megabytes at which the log is rotated; 0: never")
    files: int = setting(5, "rotated logs to keep")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSinkSettings(SinkSettings):
    """The brokers are those of [kafka]."""

    topic: str = setting("tocsin.{kind}", "topic; {kind} is verdict, case, action or job")
    timeout: int = setting(30, "seconds for the acknowledgement of a message")


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSinkSettings(SinkSettings):
    host: str = setting("", "host of the MQTT 5 broker")
    port: int = setting(0, "its port; 0: 1883, or 8883 with TLS")
    topic: str = setting("tocsin", "first level of the topics PREFIX/CLUSTER/JOB")
    keep_seconds: int = setting(3600, "seconds for which the broker keeps the last verdict of an ended job")
    expire_days: int = setting(30, "days after which any other message expires")
    user: str = setting("", "user name; empty: none")
    password_file: str = setting("", "file with the password", secret=True)
    tls: bool = setting(False, "use TLS")
    ca_file: str = setting("", "certificates of the authorities to trust; empty: those of this host")
    timeout: int = setting(20, "seconds for a connection, and for the acknowledgement of messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSinkSettings(SinkSettings):
    url: str = setting("", "where messages are posted to")
    url_file: str = setting("", "file with that URL, if the URL itself is a secret", secret=True)
    secret_file: str = setting("", "file with the secret that signs each message (HMAC-SHA256)", secret=True)
    token_file: str = setting("", "file with a bearer token", secret=True)
    timeout: int = setting(10, "seconds for a whole request")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSinkSettings(SinkSettings):
    messages: str = setting("verdict", "kinds of messages to send: verdict")
    levels: str = setting("warning,critical", SinkSettings.__dataclass_fields__["levels"].metadata["doc"])
    dry_run: bool = setting(True, "write mails to spool/NAME in the home folder instead of sending them")
    host: str = setting("localhost", "SMTP server")
    port: int = setting(0, "its port; 0: 25, or 587 with TLS")
    tls: bool = setting(False, "encrypt by STARTTLS")
    ca_file: str = setting("", "certificates of the authorities to trust; empty: those of this host")
    user: str = setting("", "user name; empty: none")
    password_file: str = setting("", "file with the password", secret=True)
    sender: str = setting("", "address of the sender")
    address: str = setting("", "address of a user, such as {user}@example.org")
    address_file: str = setting("", "file with lines `USER ADDRESS`, used before `address`")
    quiet_file: str = setting("", "file with users, and `account:NAME`, who get no mail, one per line")
    detectors: str = setting(
        "failure,limits,traces", "detectors whose findings are mailed to users, separated by commas"
    )
    digest: bool = setting(True, "one mail per user and day; false: a mail for each verdict")
    digest_hour: int = setting(7, "hour of the day at which digests are sent, in this host's time zone")
    templates: str = setting("/etc/tocsin/templates", "folder with templates that replace those of tocsin")
    timeout: int = setting(30, "seconds for each answer of the server")


SINK_KINDS: Mapping[str, type[SinkSettings]] = MappingProxyType(
    {
        "log": LogSinkSettings,
        "kafka": KafkaSinkSettings,
        "mqtt": MqttSinkSettings,
        "webhook": WebhookSinkSettings,
        "mail": MailSinkSettings,
    }
)


def _words(text: str, known: tuple[str, ...], name: str) -> frozenset[str]:
    words = frozenset(word.strip() for word in text.split(",") if word.strip())
    if unknown := sorted(words.difference(known)):
        raise SettingsError(f'{name} has "{unknown[0]}"; write some of {", ".join(known)}')
    return words
