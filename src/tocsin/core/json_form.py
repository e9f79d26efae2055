"""Dataclasses as JSON and back, by their type hints: instants in RFC 3339, `"UNLIMITED"` for no limit."""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tocsin.core.errors import UnitError
from tocsin.core.fields import ValueType
from tocsin.core.units import UNLIMITED, format_instant, parse_instant

__all__ = ["from_json", "to_json"]

_PLAIN = frozenset({str, float, bool})
"""Types with the same form in JSON."""
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def to_json(value: Any, hint: Any = None) -> Any:
    """A value as JSON; `hint` is its type, needed unless it is a dataclass."""
    if value is None or type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        return {name: to_json(getattr(value, name), each) for name, each in hints.items()}
    hint = _without_none(hint)
    if isinstance(value, list | tuple):
        return [to_json(item, get_args(hint)[0]) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    marked = _value_type(hint)
    if marked is ValueType.INSTANT:
        return format_instant(value)
    if marked is ValueType.SECONDS and value == UNLIMITED:
        return "UNLIMITED"
    return str(value) if isinstance(value, StrEnum) else value


def from_json(value: Any, hint: Any, place: str = "it") -> Any:
    """The value of this type that `to_json` wrote; a ValueError names the invalid `place`."""
    if value is None and (hint is Any or NoneType in get_args(hint)):
        return None
    hint = _without_none(hint)
    if dataclasses.is_dataclass(hint):
        return _object(value, hint, place)
    origin = get_origin(hint)
    if origin in (list, Sequence):
        items = _checked(value, list, "a list", place)
        return [from_json(item, get_args(hint)[0], f"an item of {place}") for item in items]
    if origin in (dict, Mapping):
        entries = _checked(value, dict, "an object", place)
        return {
            key: from_json(each, get_args(hint)[1], f'"{key}" of {place}') for key, each in entries.items()
        }
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if value not in list(hint):
            raise ValueError(f"{place} is {_short(value)}; one of {', '.join(hint)} is expected")
        return hint(value)
    marked = _value_type(hint)
    if marked is ValueType.INSTANT:
        return _instant(value, place)
    if marked is ValueType.SECONDS and value == "UNLIMITED":
        return UNLIMITED
    plain = get_args(hint)[0] if marked else hint
    return value if plain is Any else _checked(value, plain, _NAMES[plain], place)


def _object(value: Any, cls: Any, place: str) -> Any:
    hints = _hints(cls)
    entries = _checked(value, dict, "an object", place)
    if unknown := [name for name in entries if name not in hints]:
        raise ValueError(f'{place} has the unknown key "{unknown[0][:60]}"')
    if absent := [name for name in hints if name not in entries]:
        raise ValueError(f'{place} lacks the key "{absent[0]}"')
    return cls(**{name: from_json(entries[name], hints[name], f'"{name}" of {place}') for name in hints})


def _checked(value: Any, wanted: type, name: str, place: str) -> Any:
    """The value, if it has the type; an integer is accepted as a float."""
    good = isinstance(value, (int, float) if wanted is float else wanted)
    if not good or (isinstance(value, bool) and wanted is not bool):
        raise ValueError(f"{place} is {_short(value)}, not {name}")
    return value


def _instant(value: Any, place: str) -> int:
    with suppress(UnitError, OverflowError):
        found = parse_instant(_checked(value, str, "an instant", place), UTC)
        if found is not None:
            return found
    raise ValueError(f"{place} is {_short(value)}, not an instant")


def _short(value: Any) -> str:
    return repr(value)[:60]


def _without_none(hint: Any) -> Any:
    """The type beside None in a union of the two."""
    parts = get_args(hint)
    return next(part for part in parts if part is not NoneType) if NoneType in parts else hint


def _value_type(hint: Any) -> ValueType | None:
    return get_args(hint)[1] if get_origin(hint) is Annotated else None


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The hints of the fields, in order; cached, because computing them costs more than all else here."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}
