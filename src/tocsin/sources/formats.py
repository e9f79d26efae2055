"""Detects the format of a file from its first bytes, and opens it as a source of jobs."""

import re
import zlib
from collections.abc import Callable, Sequence
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
from tocsin.sources.mapping import read_mapping, shipped_mappings
from tocsin.sources.sacct import SacctFile
from tocsin.sources.sacct_json import SacctJsonFile
from tocsin.sources.sacct_text import header_delimiter
from tocsin.sources.swf import SwfFile
from tocsin.sources.table import TableFile

__all__ = ["open_log"]

_HEAD = 1 << 16
_SWF_COLUMNS = 18
_LOGS: tuple[tuple[re.Pattern[bytes], Callable[[], LineParser]], ...] = (
    (pbs_log.PATTERN, pbs_log.PbsParser),
    (lsf_log.PATTERN, lsf_log.LsfParser),
    (grid_engine_log.PATTERN, grid_engine_log.GridEngineParser),
)
_NO_RECORDS = "which has no accounting records"
_USE_PBS_LOG = "give the server's accounting log, server_priv/accounting/YYYYMMDD"
_USE_SACCT = "give the output of sacct --json, or of sacct -P with JobID and Submit among its columns"
_NOT_JOBS = (
    (
        re.compile(rb"(JobId|NodeName|PartitionName)="),
        f"is the text of scontrol show, {_NO_RECORDS}",
        _USE_SACCT,
    ),
    (re.compile(rb"\s*JOBID\s+(PARTITION|NAME|USER)\s"), f"is the text of squeue, {_NO_RECORDS}", _USE_SACCT),
    (re.compile(rb"\s*PARTITION\s+AVAIL\s"), f"is the text of sinfo, {_NO_RECORDS}", _USE_SACCT),
    (re.compile(rb"-{60,}|Cluster\|Account\|Login\|"), f"is a report of sreport, {_NO_RECORDS}", _USE_SACCT),
    (re.compile(rb"Job(?: Id)?: \d+"), "is the output of tracejob or qstat", _USE_PBS_LOG),
)
"""Other output of schedulers about jobs: what it is, and what to use instead."""


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
    first = next((line for line in lines if not line.startswith(b"#")), b"")
    if not (columns or delimiter):
        if first.lstrip().startswith(b"{"):
            return SacctJsonFile(source, cluster=cluster)
        delimiter = header_delimiter(first.decode("utf-8", "replace"))
        if not delimiter and (first.lstrip().startswith(b";") or _numbers(first) >= _SWF_COLUMNS):
            return SwfFile(source, cluster=cluster)
        for pattern, parser in _LOGS:
            if pattern.match(first):
                return AccountingLog(source, parser(), cluster=cluster)
        if jobcomp_log.PATTERN.match(first):
            parser_here = jobcomp_log.JobcompParser(ZoneInfo(checked_zone(zone)))
            return AccountingLog(source, parser_here, cluster=cluster)
        for pattern, what, instead in _NOT_JOBS:
            if pattern.match(first):
                raise SourceError(f"{path} {what}; {instead}")
        if first and not delimiter and b"|" not in first and not _ruled(lines):
            name = _fitting_mapping(path, first)
            table = TableFile(source, name, cluster=cluster, zone=table_zone)
            table.notes.append(f"read as a table with the mapping {name}; -m names another")
            return table
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


def _fitting_mapping(path: str, first: bytes) -> str:
    """The shipped mapping whose columns for id and submit time the table has."""
    for name in shipped_mappings():
        mapping = read_mapping(name)
        if first.startswith(b"PAR1"):
            there = _parquet_columns(path)
        else:
            there = set(cells(first.decode(errors="replace"), mapping.separator))
        if all(
            any(column in there for rule in mapping.rules[field] for column in rule.column)
            for field in ("job_id", "submit")
        ):
            return name
    line = first.decode(errors="replace")
    raise SourceError(
        f'{path} has no known format; its first line of data is "{line[:60]}{"…" if len(line) > 60 else ""}". Known are SWF, text and JSON of sacct, '
        "accounting logs of PBS, LSF, Grid Engine and jobcomp/filetxt, and tables with the columns of "
        f"{' or '.join(shipped_mappings())}. For another table, name a mapping with -m; for sacct's text without a header, "
        "name its columns with -o"
    )


def _parquet_columns(path: str) -> set[str]:
    try:
        return set(pl.read_parquet_schema(Path(path)))
    except UNREADABLE as error:
        raise SourceError(f"{path} cannot be read as Parquet: {error}") from None
