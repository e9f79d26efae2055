"""Reads the Standard Workload Format of the Parallel Workloads Archive: 18 numbers per line.

https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. Memory and CPU time are per processor there and for
the whole job here, as if it ran on one node.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.frames import outcome_from_state
from tocsin.core.intake import Batch, Rejects
from tocsin.core.outcomes import SWF_STATUSES
from tocsin.sources.lines import Block, LineFile, Pipe, line_ends, stem
from tocsin.sources.records import (
    BACKWARDS,
    LINE,
    NO_ID,
    NO_NUMBER,
    NO_SUBMIT,
    RECORD,
    WRONG_COLUMNS,
    Records,
)

__all__ = ["SwfFile"]

_COLUMNS = [
    "id",
    "submit",
    "wait",
    "run",
    "procs",
    "cpu",
    "memory",
    "req_procs",
    "req_time",
    "req_memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding",
    "think",
]
_PIECE = "piece of a job (status 2–4)"
_EXACT = 2.0**53  # largest exact integer in a float
_MOST_HEADER = 10_000
_LONG = 10 * 365 * 86400  # no log is that long
_LABEL = re.compile(r"[;#]\s*(?P<label>[A-Za-z]\w*)\s*:\s*(?P<value>.*)")
_NAMED = re.compile(r"(?P<number>\d{1,9})\s+(?P<name>\S+)")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Properties of a whole log: the epoch of its times, and which numbers name a partition."""

    start: int
    partition: pl.Expr
    segment: pl.Expr


class SwfFile:
    """A log as a source of jobs; `header` has its comments once reading has begun."""

    def __init__(self, path: str | Path | Pipe, *, cluster: str | None = None) -> None:
        name = cluster or stem(path)
        if not name:
            raise SourceError("a log from standard input has no name for its cluster; name it with -M")
        self.cluster = name
        self.rejects = Rejects()
        self.notes: list[str] = []
        self.header: list[str] = []
        self._wide = 0
        self._file = LineFile(path, notes=self.notes)
        self.total = self._file.total
        self.identity = self._file.identity("swf", cluster=self.cluster)

    def labels(self, label: str) -> list[str]:
        """The values of a header label such as `UnixStartTime`."""
        found = (_LABEL.fullmatch(line) for line in self.header)
        return [match["value"].strip() for match in found if match and match["label"] == label]

    def batches(self, resume: int = 0) -> Iterator[Batch]:
        records = Records(self.rejects, resume=resume)
        self.header.clear()
        self._wide = 0
        layout: _Layout | None = None
        for block in self._file.blocks():
            rows = self._rows(block, records)
            records.reject_lost(block)
            if layout is None and rows.height:
                layout = self._layout(rows)
            jobs = rows if layout is None else self._jobs(rows, records, layout)
            yield from records.batches(jobs, done=block.done)
        if self._wide:
            lines = "1 line has" if self._wide == 1 else f"{self._wide:,} lines have"
            self.notes.append(f"{lines} more than {len(_COLUMNS)} columns; the surplus was ignored")

    def _rows(self, block: Block, records: Records) -> pl.DataFrame:
        """The lines of at least 18 numbers; vectorised over the bytes of the block."""
        text = np.frombuffer(self._without_comments(block.data), np.uint8)
        blank = (text == 32) | (text == 9) | (text == 13)
        edge = np.concatenate(([True], (blank | (text == 10))[:-1]))
        text = np.where(blank, 32, text).astype(np.uint8)[~(blank & edge)]
        text = text[~((text == 32) & (np.concatenate((text[1:], [10])) == 10))]
        data = text.tobytes()
        ends = line_ends(data)
        lengths = np.diff(ends, prepend=-1)
        separators = np.diff(np.searchsorted(np.flatnonzero(text == 32), ends), prepend=0)
        filled = lengths > 1
        numbered = records.number(block.first + np.flatnonzero(filled))
        right = separators >= len(_COLUMNS) - 1
        wrong = ~pl.Series(right[filled])
        records.reject(numbered.filter(wrong), WRONG_COLUMNS)
        keep = np.repeat(right, lengths)
        if (separators >= len(_COLUMNS)).any():
            keep &= ~self._surplus(text, ends, separators)
        if not keep.all():
            data = text[keep].tobytes()
        numbered = numbered.filter(~wrong)
        return pl.concat([_numbers(data, numbered.height), numbered], how="horizontal")

    def _surplus(
        self, text: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], separators: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """The bytes of columns beyond the last of the format."""
        wide = np.flatnonzero(separators >= len(_COLUMNS))
        self._wide += len(wide)
        before = np.cumsum(separators) - separators  # separators of the lines before
        cuts = np.flatnonzero(text == 32)[before[wide] + len(_COLUMNS) - 1]
        step = np.zeros(len(text) + 1, np.int8)
        step[cuts] += 1
        step[ends[wide]] -= 1
        return np.asarray(np.cumsum(step[:-1]) > 0)

    def _without_comments(self, data: bytes) -> bytes:
        """Move comments to the header; an empty line keeps the line numbers right."""
        if b";" not in data and b"#" not in data:
            return data
        lines = data.split(b"\n")
        for number, line in enumerate(lines):
            if line.lstrip().startswith((b";", b"#")):
                if len(self.header) < _MOST_HEADER:
                    self.header.append(line.decode("utf-8", "replace").strip())
                lines[number] = b""
        return b"\n".join(lines)

    def _layout(self, rows: pl.DataFrame) -> _Layout:
        """Decide the layout from the header."""
        start = next(filter(None, self.labels("UnixStartTime")), "")
        if number := re.match(r"\d{1,12}(?=$|\s)", start, re.ASCII):
            start = number[0]
        else:
            problem = (
                f'UnixStartTime "{start[:40]}" is not a number' if start else "the log has no UnixStartTime"
            )
            self.notes.append(f"{problem}; its times count from 1970-01-01")
            start = "0"
        epoch = int(start)
        if epoch >= _LONG and rows["submit"].min() >= epoch - _LONG:  # type: ignore[operator]  # a column of floats
            self.notes.append(
                "the submit times are not relative to UnixStartTime; they count from 1970-01-01"
            )
            epoch = 0
        if not _used(rows, "wait") and _used(rows, "run"):
            self.notes.append("the log has no wait times; start is taken as submit")
        queues, partitions = _names(self.labels("Queue")), _names(self.labels("Partition"))
        queue, partition = _name("queue", queues), _name("partition", partitions)
        # A queue is part of the request. If a job has a partition too, that may be known only at its start, so it is not
        # part of the request. If the header names no queues, each job is decided separately: later jobs must not
        # change earlier ones.
        if queues:
            return _Layout(epoch, partition=queue, segment=partition)
        queued = queue.is_not_null()
        return _Layout(
            epoch, partition=pl.coalesce(queue, partition), segment=pl.when(queued).then(partition)
        )

    def _jobs(self, rows: pl.DataFrame, records: Records, layout: _Layout) -> pl.DataFrame:
        number = [pl.col(name) for name in _COLUMNS]
        text = pl.any_horizontal(c.is_null() | ~c.is_finite() | (c.abs() >= _EXACT) for c in number)
        wait, run, submit = pl.col("wait"), pl.col("run"), pl.col("submit")
        good = records.reject_where(rows, text, NO_NUMBER)
        good = records.reject_where(good, pl.col("id") < 0, NO_ID)
        good = records.reject_where(good, pl.col("status").is_between(2, 4), _PIECE)
        good = records.reject_where(good, submit == -1, NO_SUBMIT)
        backwards = (submit < 0) | ((wait < 0) & (wait != -1)) | ((run < 0) & (run != -1))
        good = records.reject_where(good, backwards, BACKWARDS)
        good = records.without_repeats(good, ["id", "submit"])
        return good.select(LINE, RECORD, **_fields(self.cluster, layout))


def _fields(cluster: str, layout: _Layout) -> dict[str, pl.Expr]:
    wait, run = _present("wait"), _present("run")
    submit = _whole(pl.col("submit")) + layout.start
    ran = run.is_not_null()
    procs, asked = _count("procs"), _count("req_procs")
    state = (
        pl.col("status")
        .cast(pl.Int64)
        .replace_strict(dict(SWF_STATUSES), default="UNKNOWN", return_dtype=pl.String)
    )
    start = submit + _whole(wait.fill_null(0.0))
    preceding = _whole(pl.when(pl.col("preceding") > 0).then(pl.col("preceding")))
    return {
        "cluster": pl.lit(cluster),
        "job_id": _whole(pl.col("id")),
        "submit": submit,
        "user": _text("user"),
        "uid": _whole(_present("user")),
        "group": _text("group"),
        "gid": _whole(_present("group")),
        "partition": layout.partition,
        "segment": layout.segment,
        "executable": _text("executable"),
        "req_cpus": _whole(asked),
        "req_memory": _whole(_present("req_memory") * 1024 * pl.coalesce(asked, procs)),
        "time_limit": _whole(_present("req_time")),
        "dependency": pl.when(preceding.is_not_null()).then(pl.format("after:{}", preceding)),
        "start": pl.when(ran).then(start),
        "alloc_cpus": pl.when(ran).then(_whole(procs)),
        "state": state,
        "outcome": outcome_from_state(state),
        # Without a run time, the wait ends with the cancellation.
        "end": pl.when(ran)
        .then(start + _whole(run))
        .when(wait.is_not_null() & (state == "CANCELLED"))
        .then(start),
        "elapsed": _whole(run),
        "cpu_seconds": _whole(_present("cpu") * procs),
        "max_memory": _whole(_count("memory") * 1024 * procs),
        "source": pl.lit("swf"),
        "request_final": pl.lit(True),
    }


def _numbers(data: bytes, rows: int) -> pl.DataFrame:
    schema = dict.fromkeys(_COLUMNS, pl.Float64)
    if not rows:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        data, separator=" ", has_header=False, schema=schema, quote_char=None, ignore_errors=True
    )


def _present(name: str) -> pl.Expr:
    """The value; -1 means unknown."""
    return pl.when(pl.col(name) >= 0).then(pl.col(name))


def _count(name: str) -> pl.Expr:
    return pl.when(pl.col(name) > 0).then(pl.col(name))


def _whole(number: pl.Expr) -> pl.Expr:
    return number.round().cast(pl.Int64, strict=False)


def _text(name: str) -> pl.Expr:
    return _whole(_present(name)).cast(pl.String)


def _name(column: str, names: dict[int, str]) -> pl.Expr:
    number = _whole(_present(column))
    return (
        number.replace_strict(names, default=number.cast(pl.String), return_dtype=pl.String)
        if names
        else _text(column)
    )


def _names(lines: list[str]) -> dict[int, str]:
    found = (_NAMED.match(line) for line in lines)
    return {int(match["number"]): match["name"] for match in found if match}


def _used(rows: pl.DataFrame, column: str) -> bool:
    return bool((rows[column] >= 0).any())
