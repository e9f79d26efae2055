"""The jobs of a log file or of the store, for training, back-tests and profiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.app.clusters import require_cluster
from tocsin.app.text import count, intake_notes
from tocsin.core.errors import InputError, SourceError

if TYPE_CHECKING:
    import polars as pl

    from tocsin.core.intake import JobSource

__all__ = ["LogRequest", "log_source", "one_cluster", "read_jobs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which jobs, and how to read them: those of the log file `path`, or those of the store."""

    path: str | None = None
    cluster: str | None = None
    tz: str | None = None
    mapping: str | None = None
    columns: Sequence[str] = ()
    """For sacct text without a header."""
    delimiter: str | None = None
    """For sacct text."""


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
    """The jobs of a log in order of submission; each outcome is known `history.lag` after the end, as in an import."""
    import polars as pl

    from tocsin.core.fields import KEY
    from tocsin.core.frames import SCHEMA, conform
    from tocsin.core.intake import valid_batches
    from tocsin.store.bulk import filled
    from tocsin.store.merge import NEEDED, merge

    source = log_source(app, log, path)
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


def log_source(app: App, log: LogRequest, path: str) -> "JobSource":
    """A file or pipe as a source of jobs; its format is detected unless the request implies it."""
    from tocsin.sources.formats import open_log

    zone = app.zone(log.cluster, log.tz).key
    return open_log(
        path,
        cluster=log.cluster,
        zone=zone,
        table_zone=zone if log.tz else None,
        mapping=log.mapping,
        columns=log.columns,
        delimiter=log.delimiter,
    )
