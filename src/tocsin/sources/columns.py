"""Converts columns of text to values, vectorised; invalid text is flagged.

Values in the common form are converted for the whole column at once. The rest goes through core's parser, once per
distinct text; that parser decides what is a value, what is absent and what is invalid.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl
from polars.datatypes import DataTypeClass

from tocsin.core.errors import SourceError, UnitError
from tocsin.core.units import parse_instant

__all__ = ["Converted", "by_value", "checked_zone", "instants", "integers", "local_epoch", "numbers"]

_ABSENT = frozenset(
    {"", "unknown", "none", "n/a", "invalid", "not_set", "(null)", "null", "nan", "nat", "\\n"}
)
_LARGEST = 2**63 - 1


class Converted(NamedTuple):
    values: pl.Series
    bad: pl.Series | None = None
    """True if the text is invalid (the value is null there); None if all is valid."""


def checked_zone(zone: str) -> str:
    """Check the name of a time zone."""
    try:
        ZoneInfo(zone)
    except (OSError, ValueError, ZoneInfoNotFoundError):
        raise SourceError(f'"{zone}" is not a time zone; write a name such as Europe/Zurich or UTC') from None
    return zone


def by_value(
    column: pl.Series, parse: Callable[[str], Any], dtype: pl.DataType | DataTypeClass = pl.Int64
) -> Converted:
    """Apply a parser once per distinct text of a column."""
    distinct = column.drop_nulls().unique()
    values: list[Any] = []
    bad: list[str] = []
    for text in distinct:
        try:
            value = parse(text)
            if isinstance(value, int) and abs(value) > _LARGEST:
                raise UnitError(f'"{text}" is too large')
        except UnitError:
            value = None
            bad.append(text)
        values.append(value)
    found = pl.DataFrame({"text": distinct, "value": pl.Series(values, dtype=dtype)})
    table = pl.DataFrame({"text": column}).join(found, on="text", how="left", maintain_order="left")
    flags = table["text"].is_in(bad).fill_null(False) if bad else None
    return Converted(table["value"].alias(column.name), flags)


def numbers(column: pl.Series) -> Converted:
    """Finite floats."""
    value = column.cast(pl.Float64, strict=False)
    finite = value.is_finite()
    if value.null_count() == column.null_count() and finite.all():
        return Converted(value)
    return _parse_rest(column, value, finite.fill_null(False), _number)


def integers(column: pl.Series) -> Converted:
    """Whole numbers, also written `12.0`."""
    value = column.cast(pl.Int64, strict=False)
    if value.null_count() == column.null_count():
        return Converted(value)
    floats = column.cast(pl.Float64, strict=False).round()
    value = value.zip_with(value.is_not_null(), floats.cast(pl.Int64, strict=False))
    if value.null_count() == column.null_count():
        return Converted(value)
    return _parse_rest(column, value, value.is_not_null(), _integer)


def instants(column: pl.Series, zone: str, *, form: str | None = None) -> Converted:
    """Epoch seconds from local times, RFC 3339 or epoch seconds as text; 0 is absent."""
    if form is None:
        epoch = column.cast(pl.Int64, strict=False)
        if epoch.null_count() == column.null_count():
            return Converted(epoch.replace(0, None))
    local = column.str.to_datetime(form or "%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
    value = local_epoch(local, zone)
    if value.null_count() == column.null_count():
        return Converted(value)
    place = ZoneInfo(zone)
    return _parse_rest(column, value, value.is_not_null(), lambda text: parse_instant(text, place))


def local_epoch(moments: pl.Series, zone: str) -> pl.Series:
    """Epoch seconds of local times, as Python's `zoneinfo` computes them.

    An ambiguous time is the earlier one; a skipped time continues the hours before it.
    """
    found = moments.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    if found.null_count() > moments.null_count():
        earlier = moments.dt.offset_by("-3h")
        before = earlier.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.offset_by(
            "3h"
        )
        found = found.zip_with(found.is_not_null(), before)
    return found.dt.epoch("s")


def _parse_rest(
    column: pl.Series, value: pl.Series, right: pl.Series, parse: Callable[[str], Any]
) -> Converted:
    """Parse the texts that the fast path could not."""
    others = by_value(
        column.zip_with(~right, pl.repeat(None, len(column), dtype=pl.String, eager=True)), parse, value.dtype
    )
    return Converted(value.zip_with(right, others.values), others.bad)


def _number(text: str) -> float | None:
    word = text.strip()
    if word.lower() in _ABSENT:
        return None
    try:
        value = float(word if word.isascii() and "_" not in word else "")  # Python reads 1_2 as 12
    except ValueError:
        raise UnitError(f'"{text[:80]}" is not a number') from None
    if not abs(value) < float("inf"):
        raise UnitError(f'"{text[:80]}" is not a number')
    return value


def _integer(text: str) -> int | None:
    value = _number(text)
    return None if value is None else round(value)
