"""`tocsin import`: read jobs from a log, a table or a live Slurm into the store."""

import gzip
import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tocsin.cli import options
from tocsin.cli.output import count, print_json, progress, say
from tocsin.cli.settings import Context

if TYPE_CHECKING:
    from tocsin.core.intake import JobSource
    from tocsin.store.importing import ImportSummary

__all__ = ["import_"]

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")


@click.group("import")
def import_() -> None:
    """Read jobs into the store.

    Running it again adds nothing; an import that was killed goes on where it stopped.
    """


@import_.command()
@_files
@options.cluster
@options.strict
@options.as_json
@click.pass_obj
def swf(context: Context, files: Sequence[str], cluster: str | None, strict: bool, as_json: bool) -> None:
    """Read logs in the Standard Workload Format (.swf, .swf.gz).

    The cluster is named after the file unless -M names it.
    """
    from tocsin.sources.swf import SwfFile

    _import(context, [partial(SwfFile, file, cluster=cluster) for file in files], strict, as_json)


@import_.command()
@_files
@click.option(
    "-o", "--format", "columns", metavar="COLUMNS", help="Columns of a file that has no header line."
)
@options.cluster
@options.time_zone
@options.strict
@options.as_json
@click.pass_obj
def sacct(
    context: Context,
    files: Sequence[str],
    columns: str | None,
    cluster: str | None,
    tz: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read the text of `sacct -P` or `sacct --json` from files ("-" is standard input)."""
    from tocsin.sources.sacct import SacctFile
    from tocsin.sources.slurm_json import SacctJsonFile

    zone = options.zone_of(context, cluster, tz)

    def source(file: str) -> "JobSource":
        if not columns and _is_json(file):
            return SacctJsonFile(file, cluster=cluster)
        return SacctFile(file, columns=options.words(columns) or None, cluster=cluster, zone=zone.key)

    _import(context, [partial(source, file) for file in files], strict, as_json)


@import_.command()
@_files
@click.option(
    "-m",
    "--mapping",
    required=True,
    metavar="NAME|FILE",
    help="slurm-database, f-data, or a mapping file of your own.",
)
@options.cluster
@options.time_zone
@options.strict
@options.as_json
@click.pass_obj
def table(
    context: Context,
    files: Sequence[str],
    mapping: str,
    cluster: str | None,
    tz: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read tables (CSV, CSV.gz, Parquet) by a mapping of their columns."""
    from tocsin.sources.table import TableFile

    zone = options.zone_of(context, cluster, tz).key if tz else None  # else the mapping says which
    _import(
        context,
        [partial(TableFile, file, mapping, cluster=cluster, zone=zone) for file in files],
        strict,
        as_json,
    )


@import_.command()
@options.cluster
@options.window
@options.strict
@options.as_json
@click.pass_obj
def slurm(
    context: Context,
    cluster: str | None,
    starttime: str | None,
    endtime: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read a live Slurm's accounting, by slurmrestd where a setting names it, else by sacct.

    Without -S it goes on from where the last import of this cluster ended, or 30 days back.
    """
    from tocsin.cli.clusters import accounting_source
    from tocsin.cli.times import parse_time

    now = time.time()
    zone = options.zone_of(context, cluster)
    since = parse_time(starttime, zone, now) if starttime else None
    until = parse_time(endtime, zone, now) if endtime else int(now)
    with accounting_source(context, cluster, since, until) as source:
        _import(context, [lambda: source], strict, as_json)


def _is_json(file: str) -> bool:
    """Whether the first thing in it opens a JSON object; a pipe is only peeked into."""
    try:
        if file == "-":
            return isinstance(sys.stdin.buffer, io.BufferedReader) and _opens_object(
                sys.stdin.buffer.peek(64)
            )
        with Path(file).open("rb") as raw:
            head = raw.read(2)
        with gzip.open(file) if head == b"\x1f\x8b" else Path(file).open("rb") as content:
            return _opens_object(content.read(64))
    except (OSError, EOFError):
        return False  # the source itself says what is wrong with the file


def _opens_object(head: bytes) -> bool:
    return head.lstrip()[:1] == b"{"


@dataclass
class _Total:
    """The sum over all that one command read."""

    read: int = 0
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, summary: "ImportSummary") -> None:
        self.read += summary.read
        self.new += summary.new
        self.updated += summary.updated
        self.unchanged += summary.unchanged
        for reason, number in summary.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + number
            self.lines.setdefault(reason, []).extend(summary.first_lines.get(reason, []))
        self.notes += summary.notes


def _import(
    context: Context, makers: Sequence[Callable[[], "JobSource"]], strict: bool, as_json: bool
) -> None:
    from tocsin.store.importing import run_import

    total = _Total()
    with context.store() as store:
        for make in makers:
            source = make()
            with progress("reading", source.total, quiet=as_json) as advance:
                total.add(run_import(store, source, lag=context.settings.history.lag, progress=advance))
    seconds = time.monotonic() - context.started
    _report(total, seconds, as_json)
    if strict and total.rejected:
        raise SystemExit(1)


def _report(total: _Total, seconds: float, as_json: bool) -> None:
    rate = round(total.read / seconds) if seconds > 0 else 0
    if as_json:
        print_json(
            {
                "read": total.read,
                "new": total.new,
                "updated": total.updated,
                "unchanged": total.unchanged,
                "rejected": total.rejected,
                "rejected_lines": total.lines,
                "notes": total.notes,
                "seconds": round(seconds, 3),
                "rows_per_second": rate,
            }
        )
        return
    for note in total.notes:
        say(f"note: {note}")
    for reason, number in total.rejected.items():
        lines = ", ".join(map(str, total.lines.get(reason, [])))
        say(f"rejected: {count(number, 'record')}: {reason}" + (f" (first at {lines})" if lines else ""))
    click.echo(
        f"{count(total.read, 'job')} read in {seconds:.1f} s: {total.new:,} new, {total.updated:,} updated, "
        f"{total.unchanged:,} unchanged, {sum(total.rejected.values()):,} rejected"
    )
