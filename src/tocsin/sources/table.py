"""Tables of jobs, CSV (plain or gzip) and Parquet, read with a mapping file."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from tocsin.core.errors import SourceError
from tocsin.core.frames import UNREADABLE
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.columns import checked_zone
from tocsin.sources.csv_text import cells, csv_words
from tocsin.sources.lines import LineFile, Pipe, stem
from tocsin.sources.mapped_columns import MappedTable
from tocsin.sources.mapping import ColumnRule, TableMapping, read_mapping
from tocsin.sources.parquet import try_to_read
from tocsin.sources.read_warnings import ReadWarnings
from tocsin.sources.records import BAD, EXAMPLE, LINE, RECORD, WRONG_COLUMNS, Records

__all__ = ["TableFile"]

_MAX_LINE = 128 * 2**10  # per line; the csv module accepts no longer field
_ROWS = 50_000
_FEW_ROWS = 1_000_000
_ROWS_PER_BYTE = 50  # of a Parquet file: job ids and submit times alone take more than a sixth of a bit
_MOST_TEXT = 1 << 30  # bytes per 50,000 rows


class TableFile:
    """A table as a source of jobs. Times without a zone are in `zone`, by default the mapping's."""

    def __init__(
        self,
        path: str | Path | Pipe,
        mapping: str | Path | TableMapping,
        *,
        cluster: str | None = None,
        zone: str | None = None,
    ) -> None:
        self.mapping = mapping if isinstance(mapping, TableMapping) else read_mapping(mapping)
        self.zone = checked_zone(zone or self.mapping.zone)
        self.rejects = Rejects()
        self._warnings = ReadWarnings()
        self.notes: list[str] = []
        self._file = LineFile(path, notes=self.notes, max_line=_MAX_LINE)
        self.cluster = cluster or self.mapping.cluster
        if self.cluster is None and "cluster" not in self.mapping.rules:
            self.cluster = self._named_by_file(path)
        self.total = self._file.total
        self.identity = self._file.identity(
            "table", mapping=self.mapping, cluster=self.cluster, zone=self.zone
        )

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        records = Records(self.rejects, resume=resume)
        self._warnings = ReadWarnings()
        if self._is_parquet():
            yield from self._parquet(records)
        else:
            yield from self._csv(records)
        self.notes += self._warnings.notes()

    def _named_by_file(self, path: str | Path | Pipe) -> str:
        name = stem(path)
        if name is None:
            raise SourceError("a table from standard input has no name for its cluster; name it with -M")
        self.notes.append(f'the table names no cluster; using "{name}" from the file name (set it with -M)')
        return name

    def _is_parquet(self) -> bool:
        if not self._file.regular:
            return False
        with Path(self._file.path).open("rb") as file:
            return file.read(4) == b"PAR1"

    def _wanted(self, columns: list[str]) -> list[str]:
        """The columns that the mapping uses."""
        names = {name for rules in self.mapping.rules.values() for rule in rules for name in _named(rule)}
        for field in ("job_id", "submit"):
            asked = [name for rule in self.mapping.rules[field] for name in rule.column]
            if asked and not set(asked) & set(columns):
                some = ", ".join(columns[:20])
                raise SourceError(
                    f'{self._file.name} has no column "{asked[0]}", which mapping {self.mapping.name} uses for '
                    f"{field}; it has: {some}"
                )
        naming = {name for rule in self.mapping.rules.get("cluster", ()) for name in rule.column}
        if self.cluster is None and not naming & set(columns):
            self.cluster = self._named_by_file(self._file.path)
        return [name for name in dict.fromkeys(columns) if name in names]

    def _csv(self, records: Records) -> Iterator[Batch]:
        places: dict[str, int] = {}
        columns = 0
        for block in self._file.blocks():
            data = block.data.replace(b"\r\n", b"\n").replace(b"\r", b" ")
            if not columns:
                header, data = self._header(data)
                columns = len(header)
                places = {name: header.index(name) for name in self._wanted(header)} if header else {}
            frame, right, further = csv_words(data, places, columns=columns, separator=self.mapping.separator)
            filled = _filled(data, right) & ~further
            numbered = records.number(block.first + np.flatnonzero(filled))
            records.reject_lost(block)
            records.reject(numbered.filter(pl.Series(~right[filled])), WRONG_COLUMNS)
            rows = numbered.filter(pl.Series(right[filled])).hstack(frame)
            yield from records.batches(self._jobs(rows, records), done=block.done)

    def _header(self, data: bytes) -> tuple[list[str], bytes]:
        """The names in the first line that is neither blank nor a comment, and the data after it."""
        rules = (rule for rules in self.mapping.rules.values() for rule in rules)
        comments = not any(name.startswith("#") for rule in rules for name in rule.column)
        line = rb"^(?!#)[^\n]*\S[^\n]*$" if comments else rb"^[^\n]*\S[^\n]*$"
        found = re.search(line, data, re.MULTILINE)
        if not found:
            return [], data
        names = cells(found[0].decode("utf-8", "replace"), self.mapping.separator)
        before = b"\n" * data.count(b"\n", 0, found.start())  # keeps the numbers of the lines
        return [name.strip() for name in names], before + data[found.end() :]

    def _parquet(self, records: Records) -> Iterator[Batch]:
        try:
            table = pl.scan_parquet(self._file.path)
            wanted = self._wanted(table.collect_schema().names())
            rows = int(table.select(pl.len()).collect().item())
            if rows > max(_FEW_ROWS, _ROWS_PER_BYTE * (self.total or 0)):
                raise SourceError(
                    f"{self._file.name} claims {rows:,} rows in {self.total or 0:,} bytes; it is not read"
                )
            try_to_read(Path(self._file.path), wanted)
            for frame in table.select(wanted).collect_batches(chunk_size=_ROWS, maintain_order=True):
                texts = frame.select(cs.string())
                if sum(int(text.str.len_bytes().cast(pl.Int64).sum()) for text in texts) > _MOST_TEXT:
                    raise SourceError(
                        f"{self._file.name} has text values of gigabytes, so it is not a job log; it is not read"
                    )
                numbered = records.number(np.arange(records.read + 1, records.read + frame.height + 1))
                done = (self.total or 0) * records.read // max(rows, 1)
                jobs = self._jobs(numbered.hstack(frame), records)
                yield from records.batches(jobs, done=done)
        except UNREADABLE as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise SourceError(f"{self._file.name} is not a readable Parquet file: {reason}") from None
        if records.read != rows:
            raise SourceError(
                f"{self._file.name} is damaged: only {records.read} of {rows} rows could be read"
            )

    def _jobs(self, frame: pl.DataFrame, records: Records) -> pl.DataFrame:
        mapped = MappedTable(frame, self.mapping, self._warnings, cluster=self.cluster, zone=self.zone)
        jobs = mapped.jobs().with_columns(
            frame[LINE], frame[RECORD], mapped.bad.alias(BAD), mapped.example.alias(EXAMPLE)
        )
        return records.plausible(jobs)


def _named(rule: ColumnRule) -> tuple[str, ...]:
    return rule.column + rule.less


def _filled(data: bytes, right: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Mask of the lines that are not blank."""
    filled = right.copy()
    if not right.all():
        lines = data.split(b"\n")
        for number in np.flatnonzero(~right).tolist():
            filled[number] = bool(lines[number].strip())
    return filled
