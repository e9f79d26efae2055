"""Reads jobs from the output of `sacct --json`: a file or pipe of any size."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.intake import Batch, Rejects
from tocsin.sources.json_replies import (
    adapter_of,
    adapter_of_record,
    error_in,
    jobs_frame,
    notes_on_version,
    version_of,
    warning_texts,
)
from tocsin.sources.json_stream import JsonObject
from tocsin.sources.lines import LineFile, Pipe
from tocsin.sources.records import LINE, RECORD, Records, only_cluster
from tocsin.sources.rest_versions import V36

__all__ = ["JobsReply", "SacctJsonFile"]

BLOCK = 1_000  # records per frame


class JobsReply:
    """The jobs of a reply in blocks; its version, errors and warnings are known after the last block.

    The version comes before the jobs until 22.05 and after them since; there the shape of the first record decides.
    """

    def __init__(self, chunks: Iterator[bytes], *, adapter: V36 | None = None) -> None:
        self._object = JsonObject(chunks)
        self._adapter = adapter
        self.version: str | None = None
        self.errors: list[Any] = []
        self.warnings: list[Any] = []

    def blocks(self) -> Iterator[list[Any]]:
        block: list[Any] = []
        for key, place, value in self._object.members():
            if key == "jobs" and place is not None:
                block.append(value)
                if len(block) == BLOCK:
                    yield block
                    block = []
            elif key == "meta":
                self.version = version_of(value)
            elif key in ("errors", "warnings") and value:
                (self.errors if key == "errors" else self.warnings).append(value)
        if block:
            yield block

    @property
    def keys(self) -> list[str]:
        return [*self._object.keys]

    @property
    def broken(self) -> str | None:
        return self._object.broken

    def adapter(self, block: list[Any]) -> V36:
        if self._adapter is None:
            self._adapter = adapter_of(self.version) if self.version else adapter_of_record(block[0])
        return self._adapter


class SacctJsonFile:
    """A file of `sacct --json` (also gzip, `-` for standard input) as a source of jobs."""

    def __init__(self, path: str | Path | Pipe, *, cluster: str | None = None) -> None:
        self.cluster = cluster
        self.rejects = Rejects()
        self.notes: list[str] = []
        self._file = _JsonFile(path, notes=self.notes)
        self.total = self._file.total
        self.identity = self._file.identity("sacct-json", cluster=cluster)

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        records = Records(self.rejects, resume=resume)
        reply = JobsReply(self._file.chunks())
        known = Rejects()  # rejects counted by an earlier run
        try:
            for block in reply.blocks():
                first = records.read + 1
                records.read += len(block)
                counted = self.rejects if first > resume else known
                adapter = reply.adapter(block)
                queue = isinstance(block[0], dict) and "job_state" in block[0]  # squeue or scontrol --json
                jobs = jobs_frame(
                    block,
                    adapter.queue_job if queue else adapter.accounting_job,
                    first=first,
                    rejects=counted,
                    source="squeue" if queue else "sacct",
                    cluster=self.cluster,
                )
                jobs = only_cluster(_numbered(jobs), self.cluster, records)
                yield from records.batches(records.latest(jobs), done=self._file.done)
        except SourceError as error:
            raise SourceError(f"{self._file.path}: {error}; give the output of `sacct --json`") from None
        if (self._file.broken or reply.broken) and self._file.done:
            records.read += 1  # the incomplete record
            if records.read == 1:
                raise SourceError(
                    f"{self._file.path}: {self._file.broken or reply.broken}, before the first job; "
                    "give the complete output of `sacct --json`"
                )
            yield from records.batches(pl.DataFrame(schema={RECORD: pl.Int64}), done=self._file.done)
        self._end(reply, records.read)

    def _end(self, reply: JobsReply, read: int) -> None:
        broken = self._file.broken or reply.broken
        if broken and read:
            self.rejects.add(broken, [read])
            self.notes.append(f"{self._file.path} was read up to record {read - 1}: {broken}")
        elif not read:
            self.notes.append(f"{self._file.path} has no jobs")
        if read or reply.version:
            self.notes.extend(notes_on_version(reply.version) if not broken else [])
        self.notes.extend(warning_texts(reply.warnings))
        if failure := error_in(reply.errors):
            raise failure
        if not broken and "jobs" not in reply.keys:
            members = ", ".join(reply.keys) or "nothing"
            raise SourceError(
                f'{self._file.path} has no list "jobs", but {members}; give the output of `sacct --json`'
            )


def _numbered(jobs: pl.DataFrame) -> pl.DataFrame:
    """Use the record number in place of a line number."""
    return jobs.with_columns(pl.col(RECORD).alias(LINE))


class _JsonFile(LineFile):
    """The unpacked bytes of a file in chunks; JSON need not have lines."""

    def chunks(self) -> Iterator[bytes]:
        self._read, self._broken = 0, None
        return self._chunks()

    @property
    def done(self) -> int:
        return self._read

    @property
    def broken(self) -> str | None:
        return self._broken
