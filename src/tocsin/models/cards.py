"""The card of a model: what it was trained on, how well it did, and the hashes of its files."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any, NoReturn

from tocsin import __version__
from tocsin.core.errors import ModelError, UnitError
from tocsin.core.stages import Stage
from tocsin.core.units import format_instant, parse_instant

__all__ = ["SCHEMA_VERSION", "Card", "Figure", "Promotion", "Window", "read_card"]

SCHEMA_VERSION = 2
_SEAL = "sha256"  # the card's own hash, its last key


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The submit instants of the first and the last job of the training."""

    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a report; without stage, split and data it would mean nothing."""

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

    at: int
    cluster: str | None
    replaced: str | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Facts about one version. The registry fills in `version`, `files` and `promotions`."""

    detector: str
    stage: Stage
    engine: str
    created: int
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
    features: Sequence[str] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] | None = None
    calibration: Mapping[str, Any] | None = None
    thresholds: Sequence[Mapping[str, Any]] = ()
    figures: Sequence[Figure] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each file beside the card, by its path in the folder."""
    parent: str | None = None
    promotions: Sequence[Promotion] = ()
    tocsin: str = __version__

    def to_json(self) -> dict[str, Any]:
        """As in card.json, without the card's own hash."""
        document: dict[str, Any] = {"schema": SCHEMA_VERSION}
        for name in _fields(Card):
            document[name] = getattr(self, name)
        document["window"] = self.window and {
            "first": format_instant(self.window.first),
            "last": format_instant(self.window.last),
        }
        document["created"] = format_instant(self.created)
        for name in ("operations", "clusters", "features"):
            document[name] = list(document[name])
        document["thresholds"] = [dict(threshold) for threshold in self.thresholds]
        document["figures"] = [dataclasses.asdict(figure) for figure in self.figures]
        document["promotions"] = [
            {**dataclasses.asdict(p), "at": format_instant(p.at)} for p in self.promotions
        ]
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
    """The card in these bytes; `place` names the file in the sentence of a refusal.

    The hash inside guards against damage, not against someone who can write to the folder.
    """
    try:
        document = json.loads(content, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        _refuse(place, f"it is not JSON as tocsin writes it ({error})")
    if not isinstance(document, dict):
        _refuse(place, "it is not a JSON object")
    if document.get("schema") != SCHEMA_VERSION:
        _refuse(place, f"its schema is {document.get('schema')!r}; this tocsin reads {SCHEMA_VERSION}")
    if not document.get("files"):
        _refuse(place, "it has no hashes of the model's files")
    seal = document.pop(_SEAL, None)
    _same_keys(document, ["schema", *_fields(Card)], place)
    try:
        sound = seal == hashlib.sha256(_canonical(document)).hexdigest()
    except ValueError:  # half a surrogate, or a number beyond all floats
        sound = False
    if not sound:
        _refuse(place, "it was changed after it was written: its own hash differs")
    card = _card(document, place)
    if card.render() != content:
        _refuse(place, "it was changed after it was written: it is not laid out as tocsin does")
    return card


def _card(document: Mapping[str, Any], place: str) -> Card:
    get = _Getter(document, place)
    window = get("window", dict, None)
    if window is not None:
        _same_keys(window, ["first", "last"], f"window of {place}")
    files = get("files", dict)
    if not all(isinstance(value, str) for value in files.values()):
        _refuse(place, "a hash in its files is no text")
    return Card(
        detector=get("detector", str),
        version=get("version", str),
        stage=_stage(get("stage", str), place),
        engine=get("engine", str),
        target=get("target", str, None),
        operations=[_text(name, "operations", place) for name in get("operations", list)],
        clusters=[_text(name, "clusters", place) for name in get("clusters", list)],
        window=window and Window(**{key: _instant(value, place) for key, value in window.items()}),
        rows=get("rows", int),
        data_hash=get("data_hash", str, None),
        features=[_text(name, "features", place) for name in get("features", list)],
        parameters=get("parameters", dict),
        search=get("search", dict, None),
        calibration=get("calibration", dict, None),
        thresholds=[_object(value, "thresholds", place) for value in get("thresholds", list)],
        figures=[_figure(value, place) for value in get("figures", list)],
        files=files,
        parent=get("parent", str, None),
        promotions=[_promotion(value, place) for value in get("promotions", list)],
        created=_instant(get("created", str), place),
        tocsin=get("tocsin", str),
    )


def _figure(value: Any, place: str) -> Figure:
    get = _Getter(_object(value, "figures", place), f"a figure of {place}")
    _same_keys(get.document, _fields(Figure), get.place)
    return Figure(
        name=get("name", str),
        value=get("value", float, None),
        low=get("low", float, None),
        high=get("high", float, None),
        stage=_stage(get("stage", str), place),
        split=get("split", str),
        data=get("data", str),
        reason=get("reason", str, None),
    )


def _promotion(value: Any, place: str) -> Promotion:
    get = _Getter(_object(value, "promotions", place), f"a promotion of {place}")
    _same_keys(get.document, _fields(Promotion), get.place)
    return Promotion(
        at=_instant(get("at", str), place),
        cluster=get("cluster", str, None),
        replaced=get("replaced", str, None),
        why=get("why", str),
    )


@dataclass(frozen=True, slots=True)
class _Getter:
    """Values of a JSON object by key and type; a number may be whole where a float is wanted."""

    document: Mapping[str, Any]
    place: str

    def __call__(self, key: str, kind: type, *otherwise: None) -> Any:
        value = self.document[key]
        if value is None and otherwise:
            return None
        wanted = (int, float) if kind is float else kind
        if not isinstance(value, wanted) or isinstance(value, bool):
            _refuse(self.place, f'"{key}" is {str(value)[:60]!r}, which is no {_KINDS[kind]}')
        return value


_KINDS = {str: "text", int: "whole number", float: "number", dict: "object", list: "list"}


def _fields(cls: type) -> list[str]:
    return [f.name for f in dataclasses.fields(cls)]


def _canonical(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n").encode()


def _same_keys(document: Mapping[str, Any], wanted: Sequence[str], place: str) -> None:
    if unknown := [key for key in document if key not in wanted]:
        _refuse(place, f'it has the unknown key "{unknown[0][:60]}"')
    if absent := [key for key in wanted if key not in document]:
        _refuse(place, f'it lacks the key "{absent[0]}"')


def _stage(text: str, place: str) -> Stage:
    try:
        return Stage(text)
    except ValueError:
        _refuse(place, f'"{text[:60]}" is no stage')


def _instant(value: Any, place: str) -> int:
    try:
        instant = parse_instant(value, UTC) if isinstance(value, str) else None
    except (UnitError, ValueError, OverflowError):
        instant = None
    if instant is None:
        _refuse(place, f"{str(value)[:60]!r} is no instant")
    return instant


def _text(value: Any, key: str, place: str) -> str:
    if not isinstance(value, str):
        _refuse(place, f'{str(value)[:60]!r} in "{key}" is no text')
    return value


def _object(value: Any, key: str, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(place, f'{str(value)[:60]!r} in "{key}" is no object')
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("a key occurs twice")
    return document


def _refuse(place: str, why: str) -> NoReturn:
    raise ModelError(f"{place} is refused: {why}; restore it from a backup or train again")
