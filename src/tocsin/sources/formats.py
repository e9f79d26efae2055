"""Detects the format of a file from its first bytes, and opens it as a source of jobs."""

import re
import zlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.frames import UNREADABLE
from tocsin.core.intake import JobSource
from tocsin.sources import grid_engine_log, jobcomp_log, lsf_log, pbs_log
from tocsin.sources.accounting_log import AccountingLog, LineParser
from tocsin.sources.columns import checked_zone
from tocsin.sources.csv_text import cells
from tocsin.sources.lines import Pipe, check_text, is_regular, open_file
from tocsin.sources.mapping import TableMapping, read_mapping, shipped_mappings
from tocsin.sources.not_jobs import other_kind
from tocsin.sources.parquet import try_to_read
from tocsin.sources.sacct import SacctFile
from tocsin.sources.sacct_json import SacctJsonFile
from tocsin.sources.sacct_text import header_delimiter
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile
from tocsin.sources.table_guess import SEPARATORS, guess_mapping, has_known_columns, suits_sacct, wanted

__all__ = ["open_log"]

_HEAD = 1 << 16
_SWF_COLUMNS = 18
_PLAIN = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Datetime, pl.Date)
_SAMPLE = 1_000  # rows of a table that show how its values are written
_LOGS: tuple[tuple[re.Pattern[bytes], Callable[[], LineParser]], ...] = (
    (pbs_log.PATTERN, pbs_log.PbsParser),
    (lsf_log.PATTERN, lsf_log.LsfParser),
    (grid_engine_log.PATTERN, grid_engine_log.GridEngineParser),
)


def open_log(
    path: str,
    *,
    cluster: str | None = None,
    zone: str = "UTC",
    table_zone: str | None = None,
    mapping: str | None = None,
    columns: Sequence[str] = (),
    delimiter: str | None = None,
) -> JobSource:
    """The jobs of a file or pipe; times without a zone are in `zone`, those of a table in `table_zone` or the mapping's.

    A mapping makes it a table, columns or a delimiter make it the text of sacct; otherwise the content decides.
    """
    source = path if is_regular(path) else Pipe(path)
    if mapping:
        return TableFile(source, mapping, cluster=cluster, zone=table_zone)
    head = _head(source)
    lines = [line for line in head.splitlines() if line.strip()]
    data = [line for line in lines if not line.startswith(b"#")]
    # Messages of sacct may come before its output.
    first = next((line for line in data if not line.startswith(b"sacct: ")), next(iter(data), b""))
    if not (columns or delimiter):
        if log := _scheduler_log(source, first, cluster, zone):
            return log
        if what := other_kind(head, first):
            raise SourceError(f"{path} {what}")
        if first.lstrip().startswith(b"{"):
            return SacctJsonFile(source, cluster=cluster)
        delimiter = header_delimiter(first.decode("utf-8", "replace"))
        if delimiter is None or delimiter in SEPARATORS:
            rows = lines[lines.index(first) + 1 : -1 if len(head) == _HEAD else None] if first else []
            if table := _table(source, first, rows, cluster, table_zone, sacct=delimiter is not None):
                return table
        if first and not delimiter and b"|" not in first and not _ruled(lines):
            raise _unknown(path, head, first)
    return SacctFile(source, columns=columns, cluster=cluster, zone=zone, delimiter=delimiter or "|")


def _head(source: str | Pipe) -> bytes:
    """The beginning of a file, unpacked if it is gzip."""
    if isinstance(source, Pipe):
        head = source.ahead(_HEAD)
    else:
        with open_file(source) as file:
            head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error as error:
            raise SourceError(f"{source} is not a valid gzip file: {error}") from None
    check_text(head, str(source))
    return head.removeprefix(b"\xef\xbb\xbf")


def _numbers(line: bytes) -> int:
    """How many numbers a line has; 0 if it has anything else."""
    words = line.split()
    return len(words) if all(word.lstrip(b"-+").replace(b".", b"", 1).isdigit() for word in words) else 0


def _ruled(lines: list[bytes]) -> bool:
    """Whether the second line is the ruler under the header of fixed-width text."""
    return len(lines) > 1 and not lines[1].strip(b"- ")


def _scheduler_log(source: str | Pipe, first: bytes, cluster: str | None, zone: str) -> JobSource | None:
    """A log in a format that its first line of data shows."""
    comment = first.lstrip().startswith(b";") and not header_delimiter(first.decode("utf-8", "replace"))
    if comment or _numbers(first) >= _SWF_COLUMNS:
        return SwfFile(source, cluster=cluster)
    for pattern, parser in _LOGS:
        if pattern.match(first):
            return AccountingLog(source, parser(), cluster=cluster)
    if jobcomp_log.PATTERN.match(first):
        parser_here = jobcomp_log.JobcompParser(ZoneInfo(checked_zone(zone)))
        return AccountingLog(source, parser_here, cluster=cluster)
    return None


def _table(
    source: str | Pipe,
    first: bytes,
    rows: list[bytes],
    cluster: str | None,
    zone: str | None,
    *,
    sacct: bool,
) -> TableFile | None:
    """A table whose columns a shipped mapping has, or whose columns have names in common use."""
    if parquet := first.startswith(b"PAR1"):
        columns, separator = _parquet_columns(str(source)), ","
    else:
        columns, separator = _header(first)
    sample = {} if parquet else _csv_sample(rows, columns, separator)
    if sacct and suits_sacct(columns, sample, separator):
        return None
    for name in shipped_mappings():
        if not sacct and _fits(read_mapping(name), columns):
            table = TableFile(source, name, cluster=cluster, zone=zone)
            table.notes.append(f"read as a table with the mapping {name}; -m names another")
            return table
    if not has_known_columns(columns):
        return None
    if parquet:
        sample = _parquet_sample(str(source), columns)
    guess = guess_mapping(columns, sample, file=str(source), separator=separator)
    table = TableFile(source, guess.mapping, cluster=cluster, zone=zone)
    table.notes += guess.notes
    if guess.local:
        table.notes.append(f"times without a time zone are read as {table.zone} (set it with --tz)")
    return table


def _header(first: bytes) -> tuple[list[str], str]:
    """The names in a header line, and their separator."""
    text = first.decode("utf-8", "replace")
    found = [([name.strip() for name in cells(text, separator)], separator) for separator in SEPARATORS]
    return max(found, key=lambda each: len(each[0]))


def _fits(mapping: TableMapping, columns: Sequence[str]) -> bool:
    """Whether these are columns for the id and the submit time in this mapping."""
    there = set(columns)
    return all(
        any(column in there for rule in mapping.rules[field] for column in rule.column)
        for field in ("job_id", "submit")
    )


def _csv_sample(lines: list[bytes], columns: Sequence[str], separator: str) -> dict[str, pl.Series]:
    """The first rows of CSV."""
    texts = (line.decode("utf-8", "replace") for line in lines)
    rows = [row for text in islice(texts, _SAMPLE) if len(row := cells(text, separator)) == len(columns)]
    places = {name: columns.index(name) for name in wanted(columns)}
    return {name: pl.Series([row[place] for row in rows], dtype=pl.String) for name, place in places.items()}


def _parquet_sample(path: str, columns: Sequence[str]) -> dict[str, pl.Series]:
    names = wanted(columns)
    try_to_read(Path(path), names)
    try:
        frame = pl.scan_parquet(Path(path), glob=False).select(names).head(_SAMPLE).collect()
    except UNREADABLE as error:
        raise SourceError(f"{path} cannot be read as Parquet: {error}") from None
    return {name: frame[name] for name in names}


def _unknown(path: str, head: bytes, first: bytes) -> SourceError:
    line = first.decode(errors="replace")
    shown = f'its first line of data is "{line[:60]}{"…" if len(line) > 60 else ""}"'
    if b"\0" in head:
        shown = "it is not text"
    return SourceError(
        f"{path} has no known format; {shown}. Known are SWF, text and JSON of sacct, "
        "accounting logs of PBS, LSF, Grid Engine and jobcomp/filetxt, and tables (CSV, Parquet) with a header line. "
        "For a table with unusual columns, name a mapping with -m; for sacct's text without a header, "
        "name its columns with -o"
    )


def _parquet_columns(path: str) -> list[str]:
    """The columns of plain values: no lists, structures, durations or bytes."""
    try:
        schema = pl.read_parquet_schema(Path(path))
        return [name for name, dtype in schema.items() if dtype.is_numeric() or isinstance(dtype, _PLAIN)]
    except UNREADABLE as error:
        raise SourceError(f"{path} cannot be read as Parquet: {error}") from None
