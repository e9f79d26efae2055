"""The JSON Schema of verdicts, derived from their classes."""

import dataclasses
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tocsin.core.fields import ValueType
from tocsin.core.verdict import SCHEMA_VERSION, Verdict

__all__ = ["verdict_schema"]

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
}
_KINDS: dict[ValueType, dict[str, Any]] = {
    ValueType.INSTANT: {"type": "string", "format": "date-time", "pattern": "Z$"},
    ValueType.SECONDS: {"oneOf": [{"type": "integer", "minimum": 0}, {"const": "UNLIMITED"}]},
    ValueType.BYTES: {"type": "integer", "minimum": 0},
}


def verdict_schema() -> dict[str, Any]:
    """The schema of a verdict; unknown keys are not allowed."""
    definitions: dict[str, Any] = {}
    body = _object(Verdict, definitions)
    body["properties"] = {
        "schema": {"const": SCHEMA_VERSION},
        "id": {"type": "string", "format": "uuid"},
        **body["properties"],
    }
    body["required"] = ["schema", "id", *body["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tocsin verdict",
        **body,
        "$defs": dict(sorted(definitions.items())),
    }


def _object(cls: type, definitions: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(cls, include_extras=True)
    names = [f.name for f in dataclasses.fields(cls)]
    return {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split())
        if not (cls.__doc__ or "").startswith(cls.__name__)
        else "",
        "properties": {name: _schema(hints[name], definitions) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _schema(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if hint is NoneType:
        return {"type": "null"}
    if get_origin(hint) is Annotated:
        return dict(_KINDS[get_args(hint)[1]])
    if isinstance(hint, UnionType) or (get_origin(hint) is not None and NoneType in get_args(hint)):
        return {"anyOf": [_schema(part, definitions) for part in get_args(hint)]}
    if get_origin(hint) is list:
        return {"type": "array", "items": _schema(get_args(hint)[0], definitions)}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": _schema(get_args(hint)[1], definitions)}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [str(member) for member in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}  # a placeholder: its parts may refer to it
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return dict(_PLAIN[hint])
