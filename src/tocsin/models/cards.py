"""The card of a model: what it was trained on, how well it performed, and the hashes of its files."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tocsin import __version__
from tocsin.core.errors import ModelError
from tocsin.core.fields import Instant
from tocsin.core.json_form import from_json, to_json
from tocsin.core.stages import Stage
from tocsin.models.files import parse_json

__all__ = ["SCHEMA_VERSION", "Card", "Figure", "Promotion", "Window", "read_card"]

SCHEMA_VERSION = 2
_SEAL = "sha256"  # the card's own hash, its last key


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The submit instants of the first and the last training job."""

    first: Instant
    last: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a report, with the stage, split and data it was measured on."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    stage: Stage
    split: str
    data: str
    reason: str | None = None
    """Why there is no value, or no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """When the model became champion, of which cluster (None: all), and which version it replaced."""

    at: Instant
    cluster: str | None
    replaced: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Facts about one version. The registry fills in `version`, `files` and `promotions`."""

    detector: str
    stage: Stage
    engine: str
    created: Instant
    version: str = ""
    target: str | None = None
    """The outcomes that it predicts, by name."""
    operations: Sequence[str] = field(default_factory=list)
    """The operations that it classifies."""
    clusters: Sequence[str] = field(default_factory=list)
    """The clusters that it learned from."""
    window: Window | None = None
    rows: int = 0
    data_hash: str | None = None
    features: Sequence[str] = field(default_factory=list)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] | None = None
    calibration: Mapping[str, Any] | None = None
    thresholds: Sequence[Mapping[str, Any]] = field(default_factory=list)
    figures: Sequence[Figure] = field(default_factory=list)
    uses: Mapping[str, str] = field(default_factory=dict)
    """Which rows were used for what; omitted from card.json if empty."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file beside the card, by its path in the folder."""
    parent: str | None = None
    promotions: Sequence[Promotion] = field(default_factory=list)
    tocsin: str = __version__

    def to_json(self) -> dict[str, Any]:
        """As in card.json, without the card's own hash."""
        document = {"schema": SCHEMA_VERSION, **to_json(self)}
        if not self.uses:
            del document["uses"]
        return document

    def render(self) -> bytes:
        """The bytes of card.json, with the card's own hash as the last key."""
        document = self.to_json()
        try:
            document[_SEAL] = hashlib.sha256(_canonical(document)).hexdigest()
            return _canonical(document)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"the card of {self.detector} holds a value that JSON cannot hold: {error}"
            ) from None


def read_card(content: bytes, place: str) -> Card:
    """The card in these bytes; `place` names the file in errors.

    The hash inside guards against damage, not against someone who can write to the folder.
    """
    try:
        return _parse(content)
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{place} is refused: {str(error)[:200]}; restore it from a backup or train again"
        ) from None


@lru_cache(maxsize=16)
def _parse(content: bytes) -> Card:
    """Cached: one command reads the same card several times, and checking it takes milliseconds."""
    try:
        document = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON as tocsin writes it ({error})") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    if document.get("schema") != SCHEMA_VERSION:
        raise ValueError(f"its schema is {document.get('schema')!r}; this tocsin reads {SCHEMA_VERSION}")
    if not document.get("files"):
        raise ValueError("it has no hashes of the model's files")
    seal = document.pop(_SEAL, None)
    fields = {"uses": {}, **{key: value for key, value in document.items() if key != "schema"}}
    card: Card = from_json(fields, Card)
    with suppress(ValueError):  # a lone surrogate, or a number beyond all floats, cannot be written
        if seal == hashlib.sha256(_canonical(document)).hexdigest() and card.render() == content:
            return card
    raise ValueError("it was changed after it was written: its own hash differs")


def _canonical(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()
