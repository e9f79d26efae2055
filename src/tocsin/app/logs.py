"""The jobs of a log file or of the store, for training, back-tests and profiles."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import require_cluster
from tocsin.app.text import count, intake_notes
from tocsin.core.errors import InputError, SourceError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.intake import JobSource

__all__ = ["LogRequest", "one_cluster", "read_jobs"]

_HEAD = 1 << 16
_SWF_COLUMNS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which jobs, and how to read them: those of the log file `path`, or those of the store."""

    path: str | None = None
    cluster: str | None = None
    tz: str | None = None
    mapping: str | None = None
    columns: Sequence[str] = ()


def read_jobs(app: App, log: LogRequest) -> "pl.DataFrame":
    """The jobs of a log, or of the store."""
    if log.path is not None:
        return _read_log(app, log.path, log)
    from tocsin.store.jobs import Filter, load

    jobs = load(app.store, Filter(clusters=[log.cluster] if log.cluster else []))
    if jobs.is_empty():
        if log.cluster:
            require_cluster(app, log.cluster)
        where = f' of cluster "{log.cluster}"' if log.cluster else ""
        raise InputError(f"the store has no jobs{where}; `tocsin import` reads some")
    return jobs


def one_cluster(jobs: "pl.DataFrame") -> str:
    """The cluster of all these jobs; several are refused, because their histories are unrelated."""
    found = sorted(jobs["cluster"].unique())
    if len(found) > 1:
        raise InputError(f"there are jobs of {len(found)} clusters: {', '.join(found)}; name one with -M")
    return str(found[0])


def _read_log(app: App, path: str, log: LogRequest) -> "pl.DataFrame":
    """The jobs of a log in the order of submission, each outcome known `history.lag` after the end, as in an import.

    The format is found from the first bytes: SWF, text or JSON of sacct, or a table. A pipe is read as sacct output
    unless a mapping is named.
    """
    import polars as pl

    from tocsin.core.fields import KEY
    from tocsin.core.frames import SCHEMA, conform
    from tocsin.core.intake import valid_batches
    from tocsin.store.bulk import filled
    from tocsin.store.merge import NEEDED, merge

    source = _source(app, path, log)
    read, frames = 0, [pl.DataFrame(schema=SCHEMA)]
    for batch in valid_batches(source):
        frames.append(batch.jobs)
        read += batch.read
        app.progress("reading", batch.done, source.total or 1)
    for line in intake_notes(source.notes, source.rejects):
        app.notify(line)
    records = pl.concat(frames, rechunk=True)
    if records.is_empty():
        why = max(source.rejects.counts, key=source.rejects.counts.__getitem__, default="it is empty")
        raise SourceError(f"{path} has no job that can be read: {count(read, 'record')}, {why}")
    known = {*filled(records), *KEY, *NEEDED}  # most fields are empty in most logs, and cost time
    records = records.select(name for name in SCHEMA if name in known)
    jobs = conform(merge(records.clear(), records, app.settings.history.lag).new)
    return jobs.sort("submit", "job_id", "task", nulls_last=False, maintain_order=True)


def _source(app: App, path: str, log: LogRequest) -> "JobSource":
    from tocsin.sources.lines import is_regular
    from tocsin.sources.sacct_output import sacct_output
    from tocsin.sources.swf import SwfFile
    from tocsin.sources.table import TableFile

    zone = app.zone(log.cluster, log.tz)
    head = b"" if log.mapping or log.columns or not is_regular(path) else _head(path)
    first = next((line for line in head.splitlines() if line.strip()), b"")
    if first.startswith(b";") or _numbers(first) == _SWF_COLUMNS:
        return SwfFile(path, cluster=log.cluster)
    if log.mapping or (first and b"|" not in first and not first.lstrip().startswith(b"{")):
        mapping = log.mapping or _fitting(app, path, first)
        return TableFile(path, mapping, cluster=log.cluster, zone=zone.key if log.tz else None)
    columns = list(log.columns) or None
    return sacct_output(path, columns=columns, cluster=log.cluster, zone=zone.key)


def _head(path: str) -> bytes:
    """The beginning of a file, unpacked if it is gzip."""
    from tocsin.sources.lines import open_file

    with open_file(path) as file:
        head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error as error:
            raise SourceError(f"{path} is not a valid gzip file: {error}") from None
    return head.removeprefix(b"\xef\xbb\xbf")


def _numbers(line: bytes) -> int:
    """How many numbers a line has; 0 if it has anything else."""
    words = line.split()
    return len(words) if all(word.lstrip(b"-+").replace(b".", b"", 1).isdigit() for word in words) else 0


def _fitting(app: App, path: str, first: bytes) -> str:
    """The shipped mapping whose columns for id and submit time the table has."""
    from tocsin.sources.csv_text import cells
    from tocsin.sources.mapping import read_mapping, shipped_mappings

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
            app.notify(f"note: read as a table with the mapping {name}; -m names another")
            return name
    raise SourceError(
        f"{path} is not an SWF log, text or JSON of sacct, or a table that {' or '.join(shipped_mappings())} fits; "
        "name a mapping with -m, or the columns of sacct's text without a header with -o"
    )


def _parquet_columns(path: str) -> set[str]:
    import polars as pl

    try:
        return set(pl.read_parquet_schema(Path(path)))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SourceError(f"{path} cannot be read as Parquet: {error}") from None
