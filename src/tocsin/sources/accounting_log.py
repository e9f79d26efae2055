"""Reads accounting logs with one line per event: what the logs of PBS, LSF and Grid Engine have in common."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.fields import KEY
from tocsin.core.frames import SCHEMA, outcome_from_state
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.lines import MAX_LINE, Block, LineFile, Pipe, stem
from tocsin.sources.records import LINE, NO_NUMBER, Records

__all__ = [
    "AccountingLog",
    "LineParser",
    "Unreadable",
    "bytes_of",
    "node_names",
    "on_each",
    "seconds_of",
    "whole",
]

_TYPES = {**SCHEMA, LINE: pl.Int64()}
_NEEDED = (*KEY, "start", "end", "state", LINE)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{0,9})?)([A-Za-z]{0,2})")
_SUFFIXES = " kmgtp"
_MOST = 2**62


class Unreadable(Exception):
    """A line that is not an event of this format; the text is the reason."""


class LineParser(Protocol):
    name: str
    """The value of a job's field `source`."""
    first_line: re.Pattern[str] | None
    """The start of a record that may have several lines; None if each line is a record."""

    def continues_record(self, line: str, begun: bool) -> bool:
        """Whether the record continues after this line; `begun`: the line is not its first."""
        ...

    def parse(self, line: str) -> dict[str, Any] | str:
        """The fields of the job that ended, or the kind of event if it is another one."""
        ...


class _Joined:
    """Numbered lines, with the lines of one record joined."""

    def __init__(self, parser: LineParser) -> None:
        self._parser = parser
        self._begun: list[str] = []
        self._number = self._size = 0

    def records(self, block: Block) -> Iterator[tuple[int, str]]:
        lines = enumerate(block.data.decode("utf-8", "replace").removesuffix("\n").split("\n"), block.first)
        first_line = self._parser.first_line
        if first_line is None:
            yield from lines
            return
        for number, line in lines:
            if self._begun and (first_line.match(line) or self._size > MAX_LINE):
                yield from self.rest()  # its end is missing
            if not self._begun:
                self._number, self._size = number, 0
            continues_record = self._parser.continues_record(line, bool(self._begun))
            self._begun.append(line)
            self._size += len(line)
            if not continues_record:
                yield from self.rest()

    def rest(self) -> Iterator[tuple[int, str]]:
        """The unfinished record."""
        if self._begun:
            yield self._number, "\n".join(self._begun)
            self._begun = []


class AccountingLog:
    """A log as a source of jobs. Events other than the end of a job are skipped and counted in a note."""

    def __init__(self, path: str | Pipe, parser: LineParser, *, cluster: str | None = None) -> None:
        self.rejects = Rejects()
        self.notes: list[str] = []
        self._parser = parser
        self._file = LineFile(path, notes=self.notes)
        self._cluster = cluster
        self._by_file: str | None = None
        self.total = self._file.total
        self.identity = self._file.identity(parser.name, cluster=cluster or stem(path))

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        records, others = Records(self.rejects, resume=resume), Counter[str]()
        lines, done = _Joined(self._parser), 0
        for block in self._file.blocks():
            jobs, done = self._jobs(lines.records(block), records, others), block.done
            records.reject_lost(block)
            yield from records.batches(records.plausible(jobs), done=done)
        yield from records.batches(records.plausible(self._jobs(lines.rest(), records, others)), done=done)
        if others:
            kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(others.items())[:20])
            self.notes.append(f"left out: events that are not the end of a job: {kinds}")

    def _jobs(self, lines: Iterable[tuple[int, str]], records: Records, others: Counter[str]) -> pl.DataFrame:
        rows: list[dict[str, Any]] = []
        bad: dict[str, list[int]] = {}
        for number, line in lines:
            if not line.strip() or line.startswith("#"):
                continue
            try:
                row = self._parser.parse(line.rstrip("\r"))
            except Unreadable as error:
                bad.setdefault(str(error), []).append(number)
                continue
            if isinstance(row, str):
                others[row] += 1
                continue
            if any(type(value) is int and value >= _MOST for value in row.values()):
                bad.setdefault(NO_NUMBER, []).append(number)
                continue
            row[LINE] = number
            row["cluster"] = self._cluster or row.get("cluster") or self._named_by_file()
            rows.append(row)
        found_at = [row[LINE] for row in rows] + [number for found in bad.values() for number in found]
        numbered = records.number(np.sort(np.array(found_at, np.int64)))
        for reason, found in bad.items():
            records.reject(numbered.filter(pl.col(LINE).is_in(found)), reason)
        used = {*_NEEDED, *(name for row in rows for name in row)}
        types = {name: dtype for name, dtype in _TYPES.items() if name in used}
        columns = {name: [row.get(name) for row in rows] for name in types}
        jobs = pl.DataFrame(columns, schema=types).join(numbered, on=LINE, how="left", maintain_order="left")
        return jobs.with_columns(
            outcome_from_state(pl.col("state")).alias("outcome"),
            pl.lit(self._parser.name).alias("source"),
            pl.lit(True).alias("request_final"),
        )

    def _named_by_file(self) -> str:
        if self._by_file is None:
            self._by_file = stem(self._file.path)
            if self._by_file is None:
                raise SourceError("the log names no cluster; name it with -M")
            self.notes.append(
                f'the log names no cluster; using "{self._by_file}" from the file name (set it with -M)'
            )
        return self._by_file


def whole(text: str | None) -> int | None:
    """A whole number from 0 to 10**18; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 18 else None


def seconds_of(text: str | None) -> int | None:
    """Seconds from `HH:MM:SS`, or from seconds with or without a fraction."""
    total = 0
    for part in (text or "").split(":"):
        amount = whole(part.partition(".")[0])
        if amount is None:
            return None
        total = total * 60 + amount
    return total if total < _MOST else None


def bytes_of(text: str | None, *, unit: str = "b", word: int = 8) -> int | None:
    """Bytes from an amount such as `1993mb` or `4G`, in multiples of 1,024; a bare number is in `unit`, `w` is words."""
    found = _SIZE.fullmatch(text or "")
    if not found:
        return None
    suffix = (found[2] or unit).lower()
    power = _SUFFIXES.find(suffix[0]) if suffix not in ("b", "w") else 0
    if power < 0 or suffix[1:] not in ("", "b", "w"):
        return None
    amount = round(float(found[1]) * 1024**power) * (word if suffix.endswith("w") else 1)
    return amount if amount < _MOST else None


def on_each(amount: int | None, nodes: int | None) -> int | None:
    """A whole job's amount per node, rounded up."""
    return None if amount is None else -(-amount // max(nodes or 1, 1))


def node_names(slots: Mapping[str, int]) -> str | None:
    return ",".join(slots) or None
