"""How an error is sent from the service to a client (kind and HTTP status, RFC 9457), and restored there."""

from typing import Any

from tocsin.core.errors import (
    ClusterError,
    Forbidden,
    InputError,
    ModelError,
    NotFound,
    SettingsError,
    SinkError,
    StoreError,
    TocsinError,
    Unauthenticated,
    Unavailable,
)

__all__ = ["PREFIX", "error_of", "kind_of"]

PREFIX = "urn:tocsin:problem:"
_KINDS: dict[str, tuple[type[TocsinError], int]] = {
    "unauthenticated": (Unauthenticated, 401),
    "forbidden": (Forbidden, 403),
    "not-found": (NotFound, 404),
    "bad-input": (InputError, 400),
    "model": (ModelError, 409),
    "settings": (SettingsError, 503),
    "store": (StoreError, 503),
    "cluster": (ClusterError, 503),
    "sink": (SinkError, 503),
    "unavailable": (Unavailable, 503),
    "error": (TocsinError, 500),
}


def kind_of(error: TocsinError) -> tuple[str, int]:
    """The kind and the HTTP status."""
    return next((kind, status) for kind, (cls, status) in _KINDS.items() if isinstance(error, cls))


def error_of(document: dict[str, Any]) -> TocsinError:
    """The error that a problem document describes."""
    cls, _ = _KINDS.get(str(document.get("type", "")).removeprefix(PREFIX), (TocsinError, 0))
    return cls(str(document.get("detail") or document.get("title") or "the service gave no reason"))
