"""Mapping files: which table column is which job field, in which unit, and which values mean null."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tocsin.core.errors import SourceError, UnitError
from tocsin.core.fields import FIELDS, Part
from tocsin.core.outcomes import DATABASE_STATES
from tocsin.core.toml import parse_toml
from tocsin.core.units import parse_instant

__all__ = ["UNITS", "ColumnRule", "TableMapping", "read_mapping", "shipped_mappings"]

UNITS: Mapping[str, float] = MappingProxyType(
    {
        "seconds": 1,
        "milliseconds": 1e-3,
        "microseconds": 1e-6,
        "nanoseconds": 1e-9,
        "minutes": 60,
        "hours": 3600,
        "days": 86400,
        "bytes": 1,
        "KiB": 2**10,
        "MiB": 2**20,
        "GiB": 2**30,
        "joules": 1,
        "watt-hours": 3600,
    }
)
"""Factor to the base unit."""
_FORMS = (
    "text",  # an id that may be any text; a stable number is derived from it
    "number",  # a whole number as text: an id instead of a name
    "wait-status",  # the exit code in what wait(2) returns
    "wait-signal",  # the signal in it
    "slurm-memory",  # megabytes on each node; null if the per-CPU flag is set
    "node-list",  # as Slurm writes it, or as a list of names in quotes
    "duration",  # as Slurm writes it, such as 1-12:00:00 or UNLIMITED
    "exit-code",  # the first number of sacct's 1:0
    "exit-signal",  # the second
    "array-id",  # the first number of Slurm's 17_4, or a plain id
    "array-task",  # the second
    "row-number",  # instead of a column: an id for rows that have none
)
_TRES = ("cpu", "mem", "node", "gpu", "text")
_SET_BY_TOCSIN = {
    "outcome",
    "source",
    "known_at",
    "request_final",
    "intervened",
}  # set by tocsin, never read from a column


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRule:
    """How to read one field. Of several rules, the first that gives a value applies."""

    column: tuple[str, ...] = ()
    """Column names; the first that the table has is used."""
    value: str | int | float | bool | None = None
    """A constant for all rows, instead of a column."""
    unit: str | None = None
    format: str | None = None
    """Format of a time, as in strptime."""
    origin: str | None = None
    """The time from which numbers in a column of times count; by default 1970."""
    null: tuple[str | int | float, ...] = ()
    most: float | None = None
    """Larger numbers are null."""
    unlimited: int | None = None
    prefix: str | None = None
    """Removed from an id."""
    states: Mapping[str, str] | str | None = None
    """State by word, `*` for any other word; or `common` for words in common use."""
    tres: str | None = None
    less: tuple[str, ...] = ()
    """Columns that are subtracted."""
    needs: tuple[str, ...] = ()
    """Fields that must have a value for the rule to apply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapping:
    name: str
    rules: Mapping[str, tuple[ColumnRule, ...]]
    cluster: str | None = None
    zone: str = "UTC"
    separator: str = ","
    null: tuple[str, ...] = ("",)
    tres: Mapping[str, str] = field(default_factory=dict)
    """Names of TRES by number."""


def shipped_mappings() -> list[str]:
    """Names of the built-in mappings."""
    folder = files("tocsin.sources") / "mappings"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def read_mapping(source: str | Path) -> TableMapping:
    """A built-in mapping by name, or one from a file."""
    try:
        if str(source) in shipped_mappings():
            text = (files("tocsin.sources") / "mappings" / f"{source}.toml").read_text("utf-8")
        else:
            text = Path(source).read_text("utf-8")
        table = parse_toml(text)
    except (OSError, ValueError) as error:
        known = ", ".join(shipped_mappings())
        raise SourceError(
            f"the mapping {source} cannot be read: {error}; name a TOML file or one of: {known}"
        ) from None
    return _Reader(str(source)).mapping(table)


class _Reader:
    """Checks a mapping; each error names the mapping and the key."""

    def __init__(self, name: str) -> None:
        self.name = name

    def refuse(self, key: str, reason: str) -> SourceError:
        return SourceError(f"mapping {self.name}: {key} {reason}")

    def mapping(self, table: dict[str, Any]) -> TableMapping:
        known = {"cluster", "zone", "separator", "null", "tres", "fields"}
        for key in table.keys() - known:
            raise self.refuse(key, f"is unknown; known are {', '.join(sorted(known))}")
        rules = table.get("fields")
        if not isinstance(rules, dict):
            raise self.refuse("[fields]", "is missing; it maps columns to fields")
        found = {name: self.rules(name, rule) for name, rule in rules.items()}
        for name in ("job_id", "submit"):
            if name not in found:
                raise self.refuse(
                    f"fields.{name}", "is missing; a job is identified by its id and submit time"
                )
        separator = self.text("separator", table.get("separator", ","))
        if separator not in (",", ";", "|", "\t"):
            raise self.refuse("separator", "must be a comma, a semicolon, a bar or a tab")
        return TableMapping(
            name=self.name,
            rules=found,
            cluster=self.text("cluster", table["cluster"]) if "cluster" in table else None,
            zone=self.text("zone", table.get("zone", "UTC")),
            separator=separator,
            null=tuple(self.text("null", item) for item in self.items("null", table.get("null", [""]))),
            tres=self.words("tres", table.get("tres", {})),
        )

    def rules(self, name: str, given: Any) -> tuple[ColumnRule, ...]:
        key = f"fields.{name}"
        if name not in FIELDS or name in _SET_BY_TOCSIN:
            raise self.refuse(key, "is not a field that a table can set")
        return tuple(self.rule(key, rule) for rule in self.items(key, given))

    def rule(self, key: str, given: Any) -> ColumnRule:
        parts = {"column": given} if isinstance(given, str) else given
        if not isinstance(parts, dict):
            raise self.refuse(key, 'must be a column, or a table such as { column = "x", unit = "minutes" }')
        names = [part.name for part in fields(ColumnRule)]
        for part in parts:
            if part not in names:
                raise self.refuse(f"{key}.{part}", f"is unknown; known are {', '.join(names)}")
        numbered = parts.get("unit") == "row-number" and key == "fields.job_id"
        if ("column" in parts) + ("value" in parts) + numbered != 1:
            raise self.refuse(key, "needs either a column or a value")
        made: dict[str, Any] = {}
        for part, value in parts.items():
            place = f"{key}.{part}"
            if part in ("column", "less", "needs"):
                made[part] = tuple(self.text(place, item) for item in self.items(place, value))
            elif part in ("unit", "format", "prefix", "tres", "origin"):
                made[part] = self.text(place, value)
            elif part == "null":
                made[part] = tuple(self.scalar(place, item) for item in self.items(place, value))
            elif part == "states":
                made[part] = self.states(place, value)
            else:
                made[part] = self.scalar(place, value)
        self.check(key, made)
        return ColumnRule(**made)

    def check(self, key: str, made: dict[str, Any]) -> None:
        unit, tres = made.get("unit"), made.get("tres")
        if unit is not None and unit not in UNITS and unit not in _FORMS:
            raise self.refuse(f"{key}.unit", f'"{unit}" is unknown; known are {", ".join([*UNITS, *_FORMS])}')
        if tres is not None and tres not in _TRES:
            raise self.refuse(f"{key}.tres", f'"{tres}" is unknown; known are {", ".join(_TRES)}')
        if unit == "row-number" and key != "fields.job_id":
            raise self.refuse(f"{key}.unit", '"row-number" is for job_id only')
        if "origin" in made:
            try:
                parse_instant(made["origin"], UTC)
            except (UnitError, ValueError, OverflowError) as error:
                raise self.refuse(f"{key}.origin", f"is wrong: {error}") from None
        for part in ("most", "unlimited"):
            if part in made and (isinstance(made[part], str | bool)):
                raise self.refuse(f"{key}.{part}", "must be a number")
        for name in made.get("needs", ()):
            if name not in FIELDS or FIELDS[name].part is Part.RECORD:
                raise self.refuse(f"{key}.needs", f'"{name}" is not a field')

    def states(self, key: str, value: Any) -> Mapping[str, str] | str:
        if value == "common":
            return "common"
        if value == "database":
            return {str(number): name for number, name in DATABASE_STATES.items()}
        return self.words(key, value)

    def words(self, key: str, value: Any) -> Mapping[str, str]:
        if not isinstance(value, dict):
            raise self.refuse(key, "must be a table")
        return {name: self.text(f"{key}.{name}", word) for name, word in value.items()}

    def items(self, key: str, value: Any) -> list[Any]:
        found = value if isinstance(value, list) else [value]
        if not found:
            raise self.refuse(key, "is empty")
        return found

    def text(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise self.refuse(key, f"must be text, not {value!r}")
        return value

    def scalar(self, key: str, value: Any) -> str | int | float | bool:
        if not isinstance(value, str | int | float | bool):
            raise self.refuse(key, f"must be text or a number, not {value!r}")
        return value
