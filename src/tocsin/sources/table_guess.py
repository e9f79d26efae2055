"""Maps the columns of a table without a mapping, by names in common use; refuses what has more than one reading."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.outcomes import STATES
from tocsin.sources.common_states import common_state
from tocsin.sources.known_columns import FIELD_ORDER, candidates, have_one_rank, name_and_unit
from tocsin.sources.mapping import ColumnRule, TableMapping

__all__ = ["SEPARATORS", "TableGuess", "guess_mapping", "has_known_columns", "suits_sacct", "wanted"]

SEPARATORS = (",", ";", "\t", "|")
_NULL = (
    "",
    "NULL",
    "null",
    "(null)",
    "\\N",
    "None",
    "none",
    "NaN",
    "nan",
    "NaT",
    "N/A",
    "n/a",
    "-",
    "Unknown",
)

_LIMITS_BESIDE = frozenset({"runtime", "elapsed", "duration", "executiontime"})
"""A column "walltime" is the limit only if one of these has the run time."""
_TIMES = ("submit", "eligible", "start", "end")
_COUNTS = ("req_nodes", "req_cpus", "req_gpus", "req_tasks", "alloc_nodes", "alloc_cpus", "alloc_gpus")
_NEVER_TWICE = ("job_id", "submit", "start", "end", "state")
_MEMORY = re.compile(r"mem|rss")
_FORMS = (
    *("%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M"),
    *("%m/%d/%y %H:%M:%S", "%d/%m/%y %H:%M:%S", "%m/%d/%y %H:%M", "%d/%m/%y %H:%M"),
    *("%m-%d-%Y %H:%M:%S", "%d-%m-%Y %H:%M:%S", "%m-%d-%Y %H:%M", "%d-%m-%Y %H:%M"),
    *("%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%dT%H:%M:%S"),
    *("%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M %p", "%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S"),
)  # fmt: skip
_PLAIN_TIME = "%Y-%m-%d %H:%M:%S"
_EPOCHS = ((1e8, 1e11, "seconds"), (1e11, 1e14, "milliseconds"), (1e14, 1e17, "microseconds"), (1e17, 1e20, "nanoseconds"))  # fmt: skip
"""Ranges of epoch times by unit: from 1973 to 5138."""
_CLOCK = re.compile(r"(\d+-)?\d{1,4}:\d\d:\d\d|\d+-\d\d(:\d\d)?|UNLIMITED|Partition_Limit|INVALID")
_NUMBER = re.compile(r"[+-]?\d{1,19}(\.\d*)?([eE][+-]?\d{1,2})?")
_ZONED = re.compile(r":\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$")
_PLAIN_ID = re.compile(r"\d{1,18}", re.ASCII)
_ARRAY_ID = re.compile(r"\d{1,18}(_\d{1,10})?", re.ASCII)
_STEP = re.compile(r"(\d+)\.(batch|extern|interactive|\d+)")
_WITH_UNIT = "name a mapping with -m that gives their unit and origin (see docs/import-jobs.md)"
_WITH_FORMAT = "name a mapping with -m that gives their format (see docs/import-jobs.md)"
_NEXT = "name a mapping of its columns with -m (see docs/import-jobs.md)"


@dataclass(slots=True)
class TableGuess:
    """A mapping made from the names of columns, and notes on how it reads them."""

    mapping: TableMapping
    notes: list[str] = field(default_factory=list)
    local: bool = False
    """Whether there are times without a time zone."""


def has_known_columns(columns: Sequence[str]) -> bool:
    """Whether three columns or more have names in common use for fields of a job."""
    return len(candidates(columns)) > 2


def wanted(columns: Sequence[str]) -> list[str]:
    """The columns whose first values decide how a table is read."""
    return list(dict.fromkeys(column for several in candidates(columns).values() for column in several))


def suits_sacct(columns: Sequence[str], sample: Mapping[str, pl.Series], separator: str) -> bool:
    """Whether columns with sacct's names are sacct's own: with Submit, and times in ISO 8601 or numbers if it is CSV."""
    submit = next((column for column in columns if column.lower() == "submit"), None)
    if submit is None:
        return "submit" not in candidates(columns)
    values = [text for text in sample[submit].to_list() if text not in _NULL]
    return separator == "|" or not values or any(_is_time(text) for text in values)


def guess_mapping(
    columns: Sequence[str], sample: Mapping[str, pl.Series], *, file: str, separator: str = ","
) -> TableGuess:
    """The mapping of these columns; `sample` has the first values of those that are `wanted`."""
    return _Guess(columns, sample, file).made(separator)


class _Guess:
    def __init__(self, columns: Sequence[str], sample: Mapping[str, pl.Series], file: str) -> None:
        self.columns, self.sample, self.file = columns, sample, file
        self.rules: dict[str, ColumnRule] = {}
        self.readings: dict[str, str] = {}
        """How the values of a field are read, for the note."""
        self.unclear: dict[str, str] = {}
        """Why a column was not read."""
        self.local = False

    def made(self, separator: str) -> TableGuess:
        several = candidates(self.columns)
        found = {name: self.one(name, names) for name, names in several.items()}
        self.times({name: found[name] for name in _TIMES if name in found})
        self.identity(found.get("job_id"))
        self.state(found.get("state"), found.get("exit_code"))
        for name, column in found.items():
            if name in _COUNTS:
                self.count(name, several[name])
            elif name == "time_limit":
                self.limit(column)
            elif name in ("cluster", "partition"):
                self.label(name, column)
            elif name not in self.rules and name not in (*_TIMES, "job_id", "state", "exit_code"):
                self.rules[name] = ColumnRule(column=(column,))
        used = {column for rule in self.rules.values() for column in rule.column}
        for column in self.columns:
            if column and _MEMORY.search(name_and_unit(column)[0]) and column not in used:
                self.unclear[column] = "its unit, and whether it is per node, CPU or job, is not known"
        mapping = TableMapping(
            name="made from the names of the columns",
            rules={name: (rule,) for name, rule in self.rules.items()},
            separator=separator,
            null=_NULL,
        )
        return TableGuess(mapping, self.notes(used), self.local)

    def notes(self, used: set[str]) -> list[str]:
        order = [name for name in FIELD_ORDER if name in self.rules]
        read = ", ".join(f"{name} = {self.shown(name)}" for name in order)
        notes = [f"read as a table by the names of its columns: {read}; if one is wrong, {_NEXT}"]
        notes += [f'column "{column}" is not read: {why}' for column, why in self.unclear.items()]
        rest = [
            column for column in self.columns if column and column not in used and column not in self.unclear
        ]
        if rest:
            more = f" and {len(rest) - 20} more" if len(rest) > 20 else ""
            notes.append(f"columns not read: {', '.join(rest[:20])}{more}")
        return notes

    def shown(self, name: str) -> str:
        rule, reading = self.rules[name], self.readings.get(name)
        column = f'"{rule.column[0]}"' if rule.column else "row number"
        return f"{column} ({reading})" if reading else column

    def refuse(self, problem: str, step: str = _NEXT) -> SourceError:
        return SourceError(f"{self.file} is a table, but {problem}; {step}")

    def one(self, name: str, columns: list[str]) -> str:
        """The best of several columns for a field; refused if two could be meant."""
        if name in _NEVER_TWICE and len(columns) > 1 and have_one_rank(name, columns):
            first = self.texts(columns[0])
            for other in columns[1:]:
                if self.texts(other) != first:
                    raise self.refuse(f'"{columns[0]}" and "{other}" could both be {name}')
        return columns[0]

    def texts(self, column: str) -> list[str]:
        """The values of the sample, without those that mean null."""
        values = self.sample[column].cast(pl.String, strict=False).drop_nulls().str.strip_chars()
        return [text for text in values.to_list() if text not in _NULL]

    def identity(self, column: str | None) -> None:
        if column is None:
            self.rules["job_id"] = ColumnRule(unit="row-number")
            return
        texts = self.texts(column)
        steps = {found[1] for text in texts if (found := _STEP.fullmatch(text))}
        if steps & set(texts):
            raise self.refuse(
                f'"{column}" has steps of jobs too, such as {next(filter(_STEP.fullmatch, texts))}',
                "export jobs only (sacct -X)",
            )
        if all(_PLAIN_ID.fullmatch(text) for text in texts):
            self.rules["job_id"] = ColumnRule(column=(column,))
        elif all(_ARRAY_ID.fullmatch(text) for text in texts):
            self.rules["job_id"] = ColumnRule(column=(column,), unit="array-id")
            self.rules["task"] = ColumnRule(column=(column,), unit="array-task")
            self.readings["job_id"] = "with tasks of arrays, such as 17_4"
        else:
            self.rules["job_id"] = ColumnRule(column=(column,), unit="text")
            self.readings["job_id"] = "text, so tocsin gives each a number"

    def times(self, found: Mapping[str, str]) -> None:
        if "submit" not in found:
            shown = ", ".join(self.columns[:20])
            raise self.refuse(
                f"no column has a known name for the submit time, such as submit_time; it has: {shown}"
            )
        texts = {name: self.texts(column) for name, column in found.items()}
        written = [text for values in texts.values() for text in values if not _is_time(text)]
        together = _forms(written)
        for name, column in found.items():
            dtype = self.sample[column].dtype
            if isinstance(dtype, pl.Datetime | pl.Date):
                self.local |= not getattr(dtype, "time_zone", None)
                self.rules[name] = ColumnRule(column=(column,))
                continue
            rule, reading = self.time(name, column, texts[name], together)
            if rule is not None:
                self.rules[name] = rule
                if reading:
                    self.readings[name] = reading

    def time(
        self, name: str, column: str, texts: list[str], together: list[str]
    ) -> tuple[ColumnRule | None, str | None]:
        numbers = [float(text) for text in texts if _NUMBER.fullmatch(text)]
        if numbers and len(numbers) == len(texts):
            largest = max(numbers)
            unit = next((unit for low, high, unit in _EPOCHS if low <= largest < high), None)
            if unit is None:
                value = next((text for text in texts if float(text)), texts[0])
                raise self.refuse(
                    f'"{column}" has numbers such as {value}, which are not epoch times',
                    _WITH_UNIT,
                )
            return ColumnRule(column=(column,), unit=unit), f"epoch {unit}"
        others = [text for text in texts if not _is_time(text)]
        self.local |= not all(_ZONED.search(text) for text in texts)
        if not others:
            plain = bool(texts) and all(len(text) == 19 and text[10] == " " for text in texts)
            return ColumnRule(column=(column,), format=_PLAIN_TIME if plain else None), None
        forms = together if len(together) == 1 else _forms(others)
        if len(forms) == 1:
            return ColumnRule(column=(column,), format=forms[0]), forms[0]
        if forms:
            raise self.refuse(
                f'"{column}" has times such as "{others[0]}", which may be {forms[0]} or {forms[1]}',
                _WITH_FORMAT,
            )
        if name in ("submit", "start", "end"):
            raise self.refuse(
                f'"{column}" has times in an unknown form, such as "{others[0][:40]}"',
                _WITH_FORMAT,
            )
        self.unclear[column] = f'its times have an unknown form, such as "{others[0][:40]}"'
        return None, None

    def state(self, column: str | None, code: str | None) -> None:
        if code is not None:
            codes = self.texts(code)
            if all(_NUMBER.fullmatch(text) for text in codes):
                self.rules["exit_code"] = ColumnRule(column=(code,))
            elif all(re.fullmatch(r"\d{1,9}:\d{1,9}", text) for text in codes):
                self.rules["exit_code"] = ColumnRule(column=(code,), unit="exit-code")
                self.rules["exit_signal"] = ColumnRule(column=(code,), unit="exit-signal")
        if column is not None:
            words = list(dict.fromkeys(self.texts(column)))
            if not words or not all(_NUMBER.fullmatch(word) for word in words):
                self.rules["state"] = ColumnRule(column=(column,), states="common")
                read = [(word, common_state(word)) for word in words]
                new = [
                    f"{word} → {state}"
                    for word, state in read
                    if state in STATES and word.split()[0].upper() != state
                ]
                self.readings["state"] = ", ".join(new[:8])
                return
            shown = ", ".join(words[:5])
            self.unclear[column] = (
                f"numbers such as {shown} mean different states in different systems; a mapping can give them"
            )
        elif "exit_code" in self.rules and self.rules["exit_code"].unit is None:
            self.rules["state"] = ColumnRule(
                column=self.rules["exit_code"].column, states={"0": "COMPLETED", "*": "FAILED"}
            )
            self.readings["state"] = "no column has states: 0 → COMPLETED, any other → FAILED"

    def count(self, name: str, columns: list[str]) -> None:
        """The first of these columns that has numbers; one without values counts last."""
        for column in sorted(columns, key=lambda each: not self.texts(each)):
            texts = self.texts(column)
            if all(_NUMBER.fullmatch(text) for text in texts):
                self.rules[name] = ColumnRule(column=(column,))
                return
            if name_and_unit(column)[0] == "nodes" and "node_list" not in self.rules:
                self.rules["node_list"] = ColumnRule(column=(column,), unit="node-list")
            else:
                self.unclear[column] = f'its values are not all numbers, such as "{_odd(texts)}"'

    def label(self, name: str, column: str) -> None:
        texts = self.texts(column)
        if (
            name == "partition"
            and name_and_unit(column)[0] == "queue"
            and all(_NUMBER.fullmatch(text) for text in texts)
        ):
            self.unclear[column] = "its numbers may name queues or be times in the queue"
        else:
            self.rules[name] = ColumnRule(column=(column,))

    def limit(self, column: str) -> None:
        key, unit = name_and_unit(column)
        texts = self.texts(column)
        if key == "walltime" and not _LIMITS_BESIDE & {name_and_unit(other)[0] for other in self.columns}:
            self.unclear[column] = "it may be the time limit or the run time"
        elif all(_NUMBER.fullmatch(text) for text in texts):
            if unit is None:
                self.unclear[column] = "its unit is not known (its name does not say)"
            else:
                self.rules["time_limit"] = ColumnRule(column=(column,), unit=unit)
                self.readings["time_limit"] = unit
        elif all(_CLOCK.fullmatch(text) for text in texts if not _NUMBER.fullmatch(text)) and not any(
            _NUMBER.fullmatch(text) for text in texts
        ):
            self.rules["time_limit"] = ColumnRule(column=(column,), unit="duration")
            self.readings["time_limit"] = "[D-]HH:MM:SS"
        else:
            self.unclear[column] = f'its values are not durations such as HH:MM:SS, such as "{_odd(texts)}"'


def _is_time(text: str) -> bool:
    """Whether it is ISO 8601 text or a number."""
    if _NUMBER.fullmatch(text):
        return True
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _forms(texts: list[str]) -> list[str]:
    """The formats that fit all these times."""
    found = list(_FORMS)
    for text in dict.fromkeys(texts):
        found = [form for form in found if _fits(text, form)]
    return found if texts else []


def _fits(text: str, form: str) -> bool:
    try:
        datetime.strptime(text, form)  # only the form is tried
    except ValueError:
        return False
    return True


def _odd(texts: list[str]) -> Any:
    return next((text for text in texts if not _NUMBER.fullmatch(text)), texts[0] if texts else "")[:40]
