"""How to connect to Kafka: the librdkafka properties that all clients share."""

from collections.abc import Mapping
from typing import Any

from tocsin.core.errors import SettingsError
from tocsin.core.settings import KafkaSettings
from tocsin.sources.secrets import read_secret

__all__ = ["client_properties", "require_library"]


def require_library() -> None:
    """Raise an error with the next step if confluent-kafka is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise SettingsError(
            "Kafka needs the library confluent-kafka; install it with: pip install 'tocsin[kafka]'"
        ) from None


def client_properties(settings: KafkaSettings, **more: Any) -> Mapping[str, Any]:
    """The properties of a client; the password is read from its file."""
    if not settings.brokers:
        raise SettingsError("kafka.brokers is not set; write the address of a broker, such as host:9092")
    found: dict[str, Any] = {
        "bootstrap.servers": settings.brokers,
        "client.id": "tocsin",
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 5000,
        "log_level": 0,  # errors are reported through callbacks
        "log.connection.close": False,
    }
    if settings.user:
        found |= {
            "sasl.mechanism": settings.mechanism,
            "sasl.username": settings.user,
            "sasl.password": read_secret(settings.password_file),
        }
    if settings.tls and settings.ca_file:
        found["ssl.ca.location"] = settings.ca_file
    protocol = ("SASL_" if settings.user else "") + ("SSL" if settings.tls else "PLAINTEXT")
    return {**found, "security.protocol": protocol, **more}
