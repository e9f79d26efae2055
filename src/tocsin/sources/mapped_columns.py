"""Converts the columns of a table to job fields by a mapping."""

import hashlib
import re
from collections.abc import Callable
from functools import reduce
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from tocsin.core.errors import SourceError, UnitError
from tocsin.core.fields import FIELDS, Field, Part, ValueType, fields_of
from tocsin.core.frames import SCHEMA, outcome_from_state
from tocsin.core.outcomes import STATES
from tocsin.core.units import UNLIMITED, parse_duration, parse_instant
from tocsin.sources.columns import Converted, by_value, instants, integers, local_epoch, numbers
from tocsin.sources.common_states import common_state
from tocsin.sources.mapping import UNITS, ColumnRule, TableMapping
from tocsin.sources.read_warnings import ReadWarnings
from tocsin.sources.records import LINE, RECORD
from tocsin.sources.sacct_values import TRES, parse_exit_code, parse_resources, parse_state

__all__ = ["MappedTable"]

_TOO_LARGE = 2.0**62
_PARSED: dict[str | None, Callable[[str], Any]] = {
    "duration": parse_duration,
    "exit-code": lambda text: parse_exit_code(text)["code"],
    "exit-signal": lambda text: parse_exit_code(text)["signal"],
    "array-id": lambda text: _of_array(text)[0],
    "array-task": lambda text: _of_array(text)[1],
}
_ARRAY_ID = re.compile(r"(\d{1,18})(?:_(\d{1,10}))?", re.ASCII)
_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


_REQUIRED = frozenset({"submit", "start", "end"})
"""Fields whose unreadable values reject the record."""


class MappedTable:
    """One block of a table under a mapping.

    `bad` flags rows with an unreadable time and `example` shows it; any other unreadable value is left empty with a
    warning.
    """

    def __init__(
        self,
        rows: pl.DataFrame,
        mapping: TableMapping,
        warnings: ReadWarnings,
        *,
        cluster: str | None,
        zone: str,
    ) -> None:
        self.rows, self.mapping, self.zone = rows, mapping, zone
        self.warnings = warnings
        self.bad = pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
        self.example = pl.repeat(None, rows.height, dtype=pl.String, eager=True)
        self._reading = ""  # the field
        self._columns: dict[tuple[str, tuple[str, ...]], pl.Series] = {}
        self._tres: dict[str, pl.DataFrame] = {}
        self.found: dict[str, pl.Series] = {}
        for field in sorted(mapping.rules, key=lambda name: any(rule.needs for rule in mapping.rules[name])):
            self.found[field] = self._field(FIELDS[field])
        name = cluster or mapping.cluster
        if name is not None:
            self.found["cluster"] = self._whole("cluster").fill_null(name)

    def jobs(self) -> pl.DataFrame:
        """The mapped fields and those derived from them."""
        state, start, end = self._whole("state"), self._whole("start"), self._whole("end")
        given = [name for name in fields_of(Part.ALLOCATION) if name in self.found and name != "eligible"]
        started = start.is_not_null()
        made: dict[str, Any] = {
            "cluster": self._whole("cluster"),
            "task": self._whole("task"),
            "start": start,
            "end": end,
            "state": state,
            "outcome": pl.when(state.is_not_null()).then(outcome_from_state(pl.lit(state))),
            "elapsed": pl.coalesce(self._whole("elapsed"), end - start),
            "source": pl.lit("table"),
            "request_final": pl.lit(True),
        }
        allocation = {name: pl.when(started).then(pl.col(name)) for name in given}
        return pl.DataFrame(self.found).with_columns(**allocation | made)

    def _whole(self, field: str) -> pl.Series:
        """The field's column; empty if the mapping has none."""
        found = self.found.get(field)
        return self._empty(SCHEMA[field]) if found is None else found

    def _empty(self, dtype: pl.DataType) -> pl.Series:
        return pl.repeat(None, self.rows.height, dtype=dtype, eager=True)

    def _field(self, field: Field) -> pl.Series:
        """The value of the first rule that has one."""
        self._reading = field.name
        parts = [self._rule(field, rule) for rule in self.mapping.rules[field.name]]
        whole = reduce(lambda first, next_: first.zip_with(first.is_not_null(), next_), parts)
        return whole.alias(field.name)

    def _rule(self, field: Field, rule: ColumnRule) -> pl.Series:
        dtype = SCHEMA[field.name]
        try:
            if rule.unit == "row-number":
                value = self.rows[RECORD].cast(dtype)
            elif rule.value is not None:
                value = pl.repeat(rule.value, self.rows.height, eager=True).cast(dtype)
            else:
                name = next((name for name in rule.column if name in self.rows.columns), None)
                value = (
                    self._empty(dtype)
                    if name is None
                    else self._column(field, rule, name).cast(dtype, strict=False)
                )
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0][:120]
            raise SourceError(
                f"mapping {self.mapping.name}: fields.{field.name} does not fit: {reason}"
            ) from None
        for needed in rule.needs:
            value = value.zip_with(self._whole(needed).is_not_null(), self._empty(dtype))
        return value

    def _column(self, field: Field, rule: ColumnRule, name: str) -> pl.Series:
        column = self._present(name, rule)
        if rule.tres is not None:
            return self._resource(name, column, rule.tres)
        if rule.states is not None or field.name == "state":
            return self._states(column, rule)
        if rule.unit in _PARSED:
            return self._take(column, _PARSED[rule.unit], pl.Int64)
        if field.name in ("job_id", "raw_id"):
            return self._number(_without(column, rule.prefix), rule, identity=True)
        if field.type is ValueType.INSTANT:
            return self._instant(column, rule)
        if field.type is ValueType.FLAG:
            return self._take(column, lambda text: _FLAGS.get(text.lower()), pl.Boolean)
        if field.type is ValueType.TEXT:
            if rule.unit == "number":
                return self._number(column, rule).cast(pl.Int64, strict=False).cast(pl.String)
            text = _without(column, rule.prefix)
            return by_value(text, _names, pl.String).values if rule.unit == "node-list" else text
        return self._amount(self._number(column, rule), rule, field)

    def _states(self, column: pl.Series, rule: ColumnRule) -> pl.Series:
        states = self._take(column, _state_reader(rule), pl.String)
        if rule.states == "common":
            self.warnings.unknown_states(states.filter(~states.is_in([*STATES, "UNKNOWN"]).fill_null(True)))
        return states

    def _present(self, name: str, rule: ColumnRule) -> pl.Series:
        """Without values that mean null; numbers are checked after conversion."""
        words = (*self.mapping.null, *(item for item in rule.null if isinstance(item, str)))
        if (name, words) not in self._columns:
            self._columns[name, words] = self._cleared(self.rows[name], words)
        return self._columns[name, words]

    def _cleared(self, column: pl.Series, words: tuple[str, ...]) -> pl.Series:
        if column.dtype == pl.String:
            text = pl.col("text").str.strip_chars()
            return pl.DataFrame({"text": column}).select(pl.when(~text.is_in(words)).then(text)).to_series()
        return column.fill_nan(None) if column.dtype.is_float() else column

    def _take(self, column: pl.Series, parse: Callable[[str], Any], dtype: Any) -> pl.Series:
        text = column.cast(pl.String)
        return self._flag(by_value(text, parse, dtype), text)

    def _flag(self, found: Converted, text: pl.Series) -> pl.Series:
        if found.bad is None:
            return found.values
        if self._reading in _REQUIRED:
            shown = pl.select(pl.format('{} "{}"', pl.lit(self._reading), text.str.slice(0, 80))).to_series()
            self.example = shown.zip_with(found.bad & ~self.bad, self.example)
            self.bad = self.bad | found.bad
        else:
            self.warnings.unreadable(self._reading, text.filter(found.bad), self.rows[LINE].filter(found.bad))
        return found.values

    def _number(self, column: pl.Series, rule: ColumnRule, *, identity: bool = False) -> pl.Series:
        if column.dtype.is_numeric():
            value = column
        elif identity:
            text = column.cast(pl.String)
            value = _ids(text) if rule.unit == "text" else integers(text).values
        else:
            text = column.cast(pl.String)
            value = self._flag(numbers(text), text)
        marks = [float(item) for item in rule.null if not isinstance(item, str)]
        keep = ~value.cast(pl.Float64).is_in(marks) if marks else value.is_not_null()
        if rule.most is not None:
            keep = keep & (value.cast(pl.Float64) <= float(rule.most))
        return value.zip_with(
            keep.fill_null(False), pl.repeat(None, len(value), dtype=value.dtype, eager=True)
        )

    def _amount(self, value: pl.Series, rule: ColumnRule, field: Field) -> pl.Series:
        if rule.unit in ("wait-status", "wait-signal"):
            status = value.cast(pl.Int64, strict=False)
            return (status // 256) % 256 if rule.unit == "wait-status" else status % 128
        number = value.cast(pl.Float64)
        for name in rule.less:
            if name in self.rows.columns:
                number = number - self._number(self._present(name, rule), rule).cast(pl.Float64)
        if rule.unit == "slurm-memory":
            number = number * 2**20
        amount = number * UNITS.get(rule.unit or "", 1)
        if field.type is ValueType.NUMBER:
            return amount
        fits = (amount.is_between(0, _TOO_LARGE)).fill_null(False)
        whole = amount.round().zip_with(fits, pl.repeat(None, len(amount), dtype=pl.Float64, eager=True))
        whole = whole.cast(pl.Int64)
        if field.limit and rule.unlimited is not None:
            no_limit = (number == float(rule.unlimited)).fill_null(False)
            whole = pl.repeat(UNLIMITED, len(whole), dtype=pl.Int64, eager=True).zip_with(no_limit, whole)
        return whole

    def _instant(self, column: pl.Series, rule: ColumnRule) -> pl.Series:
        if isinstance(column.dtype, pl.Date):
            column = column.cast(pl.Datetime("us"))
        if isinstance(column.dtype, pl.Datetime):
            epoch = column.dt.epoch("s") if column.dtype.time_zone else local_epoch(column, self.zone)
        elif rule.unit is not None or rule.origin is not None:
            origin = parse_instant(rule.origin or "", ZoneInfo(self.zone)) or 0
            seconds = self._number(column, rule).cast(pl.Float64) * UNITS.get(rule.unit or "", 1)
            epoch = (seconds.floor() + origin).cast(pl.Int64, strict=False)
        elif column.dtype.is_numeric():
            epoch = self._number(column, rule).cast(pl.Float64).cast(pl.Int64, strict=False)
        else:
            form = rule.format
            text = column.cast(pl.String)
            epoch = self._flag(instants(text, self.zone, form=form), text)
            marks = [item for item in rule.null if isinstance(item, int)]
            epoch = (
                epoch.zip_with(~epoch.is_in(marks).fill_null(False), self._empty(pl.Int64()))
                if marks
                else epoch
            )
        return epoch.replace(0, None)

    def _resource(self, name: str, column: pl.Series, part: str) -> pl.Series:
        """One part of a column of TRES, in which numbers may be used instead of names."""
        if name not in self._tres:
            names = self.mapping.tres

            def parse(text: str) -> dict[str, Any]:
                items = (item.partition("=") for item in text.split(",") if item)
                return parse_resources(
                    ",".join(f"{names.get(key, key)}{equals}{value}" for key, equals, value in items)
                )

            self._tres[name] = self._take(column, parse, TRES).struct.unnest()
        found = self._tres[name]
        if part == "mem":
            nodes = found["node"].fill_null(1).clip(lower_bound=1)
            return (found["mem"] + nodes - 1) // nodes
        return found[part]


def _of_array(text: str) -> tuple[int, int | None]:
    found = _ARRAY_ID.fullmatch(text)
    if not found:
        raise UnitError(f'"{text[:80]}" is not an id such as 17 or 17_4')
    return int(found[1]), int(found[2]) if found[2] else None


def _without(column: pl.Series, prefix: str | None) -> pl.Series:
    if column.dtype.is_numeric():
        return column
    text = column.cast(pl.String)
    return text.str.strip_prefix(prefix) if prefix else text


def _ids(text: pl.Series) -> pl.Series:
    """A number as it is; any other text as a stable number below 10**18 derived from it (BLAKE2b)."""
    found = integers(text)
    if found.bad is None:
        return found.values
    texts = text.zip_with(found.bad, pl.repeat(None, len(text), dtype=pl.String, eager=True))
    return found.values.zip_with(~found.bad, by_value(texts, _hashed).values)


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()) % 10**18


def _state_reader(rule: ColumnRule) -> Callable[[str], str | None]:
    """By the mapping's table, or a state as sacct prints it."""
    table = rule.states
    if isinstance(table, str):
        return common_state

    def read(text: str) -> str | None:
        if table is None:
            word: str | None = parse_state(text)["state"]
            return word
        return table.get(text.strip().removesuffix(".0"), table.get("*", "UNKNOWN"))

    return read


def _names(text: str) -> str | None:
    """`['n1', 'n2']` as `n1,n2`; Slurm's own lists have no quotes and stay as they are."""
    if not text.startswith("["):
        return text
    names = (word.strip(" '\"") for word in text.strip("[] ").split(","))
    return ",".join(name for name in names if name) or None
