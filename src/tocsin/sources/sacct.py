"""Reads jobs from the text of `sacct -P`, in a file or from live sacct one time span after another."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from tocsin.core.errors import ClusterError, SourceError
from tocsin.core.frames import conform
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.columns import checked_zone
from tocsin.sources.commands import run, slurm_env, stream
from tocsin.sources.lines import Block, LineFile, Lines, Pipe, stem
from tocsin.sources.read_warnings import ReadWarnings
from tocsin.sources.records import (
    LINE,
    NO_TIME,
    RECORD,
    WRONG_COLUMNS,
    Records,
    only_cluster,
    reject_incomplete,
)
from tocsin.sources.sacct_fields import closest, unknown_fields
from tocsin.sources.sacct_jobs import STEP, WANTED, jobs_of, split_ids, steps_of
from tocsin.sources.sacct_steps import FOLDED, ID, fold_steps
from tocsin.sources.sacct_text import SacctTable, column_names, column_words

__all__ = ["LIVE_COLUMNS", "SacctFile", "SacctLive"]

_HOUR, _DAY = 3600, 86400
_NO_JOBS = pl.DataFrame(schema={RECORD: pl.Int64, "partition": pl.String})
_FEW, _MANY = 10_000, 100_000  # records in a span: with fewer, the next one is longer, with more, shorter

LIVE_COLUMNS = (
    "JobID",
    "JobIDRaw",
    "Cluster",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "State",
    "ExitCode",
    "User",
    "UID",
    "Group",
    "GID",
    "Account",
    "Partition",
    "QOS",
    "Reservation",
    "JobName",
    "ReqNodes",
    "ReqCPUS",
    "ReqMem",
    "ReqTRES",
    "TimelimitRaw",
    "Timelimit",
    "Constraints",
    "Licenses",
    "Priority",
    "NNodes",
    "NCPUS",
    "AllocTRES",
    "NodeList",
    "ElapsedRaw",
    "TotalCPU",
    "UserCPU",
    "SystemCPU",
    "MaxRSS",
    "NTasks",
    "MaxDiskRead",
    "MaxDiskWrite",
    "TRESUsageInTot",
    "TRESUsageOutTot",
    "ConsumedEnergyRaw",
    "WorkDir",
    "SubmitLine",
)
"""Columns requested from live sacct, if it has them; free text comes last."""


class _Reading:
    """One pass over sacct's text: takes blocks, returns jobs with the usage of their steps.

    The last job of a block is held back, because its steps may be in the next block.
    """

    def __init__(
        self,
        table: SacctTable,
        records: Records,
        warnings: ReadWarnings,
        *,
        cluster: str | None,
        zone: str,
        unnamed: Callable[[], str] | None = None,
    ) -> None:
        """`unnamed` names the cluster of a text without that column."""
        self.table, self.records, self.warnings = table, records, warnings
        self.cluster, self.zone, self._unnamed = cluster, zone, unnamed
        self.held: pl.DataFrame | None = None

    @property
    def upto(self) -> int:
        """The number of records that are finished."""
        return self.records.read if self.held is None else int(self.held[RECORD][0]) - 1

    def jobs(self, block: Block, *, name: str) -> pl.DataFrame:
        """The jobs finished by this block."""
        rows, bad = self.table.rows(block, name=name)
        rows = split_ids(rows)
        is_step = rows[STEP].is_not_null()
        lines = np.sort(np.concatenate((rows.filter(~is_step)[LINE].to_numpy(), bad)))
        numbered = self.records.number(lines)
        self.records.reject(numbered.filter(pl.col(LINE).is_in(bad.tolist())), WRONG_COLUMNS)
        if self.cluster is None and "cluster" not in rows.columns and rows.height:
            if self._unnamed is None:
                raise SourceError(f"{name} has no column Cluster; name the cluster with -M")
            self.cluster = self._unnamed()
        single = rows.filter(~is_step).join(numbered, on=LINE, how="left", maintain_order="left")
        jobs = jobs_of(single, cluster=self.cluster, zone=self.zone, warnings=self.warnings)
        if self.held is not None:
            jobs = pl.concat([self.held, jobs])
        jobs, lone = fold_steps(jobs, steps_of(rows.filter(is_step), self.warnings))
        self.warnings.orphan_steps(lone[LINE])
        self.held = jobs.tail(1) if jobs.height else None
        return self._good(jobs.head(-1) if jobs.height else jobs)

    def rest(self) -> pl.DataFrame:
        """The last job."""
        self.records.reject(self.records.number(self.table.rest()), WRONG_COLUMNS)
        jobs, self.held = self.held, None
        return _NO_JOBS if jobs is None else self._good(jobs)

    def _good(self, jobs: pl.DataFrame) -> pl.DataFrame:
        jobs = only_cluster(jobs, self.cluster, self.records)
        jobs = self.records.plausible(jobs, pl.format('JobID "{}"', pl.col(ID).str.slice(0, 80)))
        return jobs.with_columns(
            pl.max_horizontal(field, f"_{field}") if field == "max_memory" else _own_first(field)
            for field in FOLDED
        )


def _own_first(field: str) -> pl.Expr:
    return (
        pl.col("_steps").alias("steps") if field == "steps" else pl.coalesce(field, f"_{field}").alias(field)
    )


class SacctFile:
    """Text of `sacct -P` with a header line, or with its `columns`; times without a zone are in `zone`.

    The delimiter is the one of `sacct --delimiter`, of any length.
    """

    def __init__(
        self,
        path: str | Path | Pipe,
        *,
        columns: Sequence[str] | str | None = None,
        cluster: str | None = None,
        zone: str = "UTC",
        delimiter: str = "|",
    ) -> None:
        self.columns = column_names(columns) if columns else None
        self.delimiter = delimiter
        for name in unknown_fields(column_words(columns or "")):
            meant = closest(name)
            hint = f"did you mean {meant}?" if meant else "sacct --helpformat lists them"
            raise SourceError(f'"{name}" is not a column of sacct; {hint}')
        self.cluster = cluster
        self.zone = checked_zone(zone)
        self.rejects = Rejects()
        self.notes: list[str] = []
        self._file = LineFile(path, notes=self.notes)
        self.total = self._file.total
        self.identity = self._file.identity(
            "sacct", columns=self.columns, cluster=cluster or stem(path), zone=zone, delimiter=delimiter
        )

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        records = Records(self.rejects, resume=resume)
        table = SacctTable(self.columns, wanted=WANTED, notes=self.notes, delimiter=self.delimiter)
        warnings = ReadWarnings()
        reading = _Reading(
            table, records, warnings, cluster=self.cluster, zone=self.zone, unnamed=self._named_by_file
        )
        name, done = self._file.name, 0
        for block in self._file.blocks():
            jobs, done = reading.jobs(block, name=name), block.done
            records.reject_lost(block)
            yield from records.batches(jobs, done=done, upto=reading.upto)
        yield from records.batches(reading.rest(), done=done)
        self.notes += warnings.notes()
        if NO_TIME in self.rejects.counts:
            self.notes.append("unset SLURM_TIME_FORMAT, or set it to %s, and run sacct again")

    def _named_by_file(self) -> str:
        name = stem(self._file.path)
        if name is None:
            raise SourceError(
                "text of sacct from standard input has no column Cluster; name the cluster with -M"
            )
        self.notes.append(
            f'the text has no column Cluster; using "{name}" from the file name (set it with -M)'
        )
        return name


class SacctLive:
    """All jobs alive in [since, until), span by span; a job in two spans comes twice.

    Duplicates (-D) are requested, so that each run of a requeued job is read. sacct omits jobs that were never
    eligible, such as held ones; the queue has them.
    """

    def __init__(
        self,
        since: int,
        until: int,
        *,
        cluster: str | None = None,
        slurm_conf: str = "",
        command: str = "sacct",
        timeout: float = 600,
    ) -> None:
        self.since, self.until = since, max(since, until)
        self.cluster = cluster
        self.command = command
        self.env = slurm_env(slurm_conf)
        self.timeout = timeout
        self.rejects = Rejects()
        self.notes: list[str] = []
        self.total: int | None = self.until - self.since
        self.identity = f"sacct-live:{cluster or ''}:{self.since}:{self.until}"

    def columns(self) -> list[str]:
        """Those of LIVE_COLUMNS that this version of sacct has."""
        known = (
            run([self.command, "--helpformat"], timeout=self.timeout, env=self.env)
            .decode("utf-8", "replace")
            .lower()
            .split()
        )
        found = [name for name in LIVE_COLUMNS if name.lower() in known]
        if not {"JobID", "Submit"} <= set(found):
            raise ClusterError(f"{self.command} --helpformat lists no JobID and Submit; is it Slurm's sacct?")
        return found

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        """The position is the instant up to which all jobs were read."""
        columns, warnings = self.columns(), ReadWarnings()
        start, span = max(resume, self.since), _DAY
        while start < self.until:
            end = min(start + span, self.until)
            records = Records(self.rejects)
            for batch in self._span(columns, start, end, records, warnings):
                yield replace(batch, position=start, done=start - self.since)
            yield Batch(conform(_NO_JOBS), read=0, position=end, done=end - self.since)
            if records.read > _MANY:
                span = max(span // 2, _HOUR)
            elif records.read < _FEW:
                span = min(span * 2, 30 * _DAY)
            start = end
        self.notes += warnings.notes()

    def _span(
        self, columns: list[str], start: int, end: int, records: Records, warnings: ReadWarnings
    ) -> Iterator[Batch]:
        # Random each time: a job name, which may hold any character, cannot forge a record.
        delimiter = f"<{secrets.token_hex(4)}>"
        argv = [self.command, "-P", "-a", "-D", "--noconvert", "--noheader", f"--delimiter={delimiter}"]
        argv += ["-o", ",".join(columns)]
        argv += ["-S", _clock(start), "-E", _clock(end)]
        argv += ["-M", self.cluster] if self.cluster else []
        output = Lines(
            self.command,
            lambda: stream(argv, timeout=self.timeout, env=self.env),
            notes=[],  # an empty span is normal
        )
        table = SacctTable(columns, wanted=WANTED, notes=self.notes, delimiter=delimiter)
        reading = _Reading(table, records, warnings, cluster=self.cluster, zone="UTC")
        for block in output.blocks():
            jobs = reject_incomplete(reading.jobs(block, name=self.command), self.rejects)
            records.reject_lost(block)
            yield from records.batches(jobs, done=0, upto=reading.upto)
        yield from records.batches(reject_incomplete(reading.rest(), self.rejects), done=0)


def _clock(epoch: int) -> str:
    """The format of `-S` and `-E`; commands run with TZ=UTC."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S")
