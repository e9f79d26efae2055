"""The fields of a job as JSON and back: instants in RFC 3339, `"UNLIMITED"` for no limit."""

from datetime import UTC
from typing import Any

from tocsin.core.fields import FIELDS, ValueType
from tocsin.core.ids import JobKey
from tocsin.core.units import UNLIMITED, format_instant, parse_instant

__all__ = ["from_json", "json_value", "to_json"]

_NO_LIMIT = "UNLIMITED"


def json_value(name: str, value: Any) -> Any:
    """A field's value in JSON."""
    field = FIELDS.get(name)
    if value is None or field is None:
        return value
    if field.type is ValueType.INSTANT:
        return format_instant(value)
    if field.limit and value == UNLIMITED:
        return _NO_LIMIT
    return value


def to_json(row: dict[str, Any]) -> dict[str, Any]:
    """One row as a JSON object with its key in front."""
    key = JobKey(row["cluster"], row["job_id"], row["task"], row["submit"])
    return {"job": str(key), **{name: json_value(name, value) for name, value in row.items()}}


def from_json(document: dict[str, Any]) -> dict[str, Any]:
    """The row of all fields that `to_json` wrote."""
    return {name: _value(name, document.get(name)) for name in FIELDS}


def _value(name: str, value: Any) -> Any:
    field = FIELDS[name]
    if value is None:
        return None
    if field.type is ValueType.INSTANT:
        return parse_instant(value, UTC)
    return UNLIMITED if field.limit and value == _NO_LIMIT else value
