"""`tocsin import`: read jobs from a log, a table or a live Slurm into the store."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click

from tocsin.app.app import App
from tocsin.app.text import count, intake_notes
from tocsin.cli import options
from tocsin.cli.output import print_json, progress, say
from tocsin.core.intake import Rejects

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
def swf(app: App, files: Sequence[str], cluster: str | None, strict: bool, as_json: bool) -> None:
    """Read logs in the Standard Workload Format (.swf, .swf.gz).

    The cluster is named after the file unless -M names it.
    """
    from tocsin.sources.swf import SwfFile

    _import(app, [partial(SwfFile, file, cluster=cluster) for file in files], strict, as_json, names=files)


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
    app: App,
    files: Sequence[str],
    columns: str | None,
    cluster: str | None,
    tz: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read the text of `sacct -P` or `sacct --json` from files ("-" is standard input)."""
    from tocsin.sources.sacct_output import sacct_output

    zone = app.zone(cluster, tz)
    names = options.words(columns) or None
    makers = [partial(sacct_output, file, columns=names, cluster=cluster, zone=zone.key) for file in files]
    _import(app, makers, strict, as_json, names=files)


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
    app: App,
    files: Sequence[str],
    mapping: str,
    cluster: str | None,
    tz: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read tables (CSV, CSV.gz, Parquet) by a mapping of their columns."""
    from tocsin.sources.table import TableFile

    zone = app.zone(cluster, tz).key if tz else None  # else the mapping says which
    _import(
        app,
        [partial(TableFile, file, mapping, cluster=cluster, zone=zone) for file in files],
        strict,
        as_json,
        names=files,
    )


@import_.command()
@options.cluster
@options.window
@options.strict
@options.as_json
@click.pass_obj
def slurm(
    app: App,
    cluster: str | None,
    starttime: str | None,
    endtime: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Read a live Slurm's accounting, by slurmrestd where a setting names it, else by sacct.

    Without -S it goes on from where the last import of this cluster ended, or 30 days back.
    """
    from tocsin.app.clusters import accounting_source
    from tocsin.app.times import parse_time

    now = time.time()
    zone = app.zone(cluster)
    since = parse_time(starttime, zone, now) if starttime else None
    until = parse_time(endtime, zone, now) if endtime else int(now)
    with accounting_source(app, cluster, since, until) as source:
        _import(app, [lambda: source], strict, as_json)


@dataclass
class _Total:
    """The sum over all that one command read."""

    read: int = 0
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    lines: dict[str, list[int]] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, told: "ImportSummary") -> None:
        self.read += told.read
        self.new += told.new
        self.updated += told.updated
        self.unchanged += told.unchanged
        for reason, number in told.rejected.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + number
            self.lines.setdefault(reason, []).extend(told.first_lines.get(reason, []))
        self.examples = told.examples | self.examples
        self.notes += told.notes


def _import(
    app: App,
    makers: Sequence[Callable[[], "JobSource"]],
    strict: bool,
    as_json: bool,
    *,
    names: Sequence[str] = (),
) -> None:
    """Import one after another; `names` are those of the files, for the messages where there are several."""
    from tocsin.store.importing import run_import

    total, lost, started = _Total(), False, time.monotonic()
    with _ended_in_order():
        for number, make in enumerate(makers):
            source = make()
            with progress("reading", source.total, quiet=as_json) as advance:
                told = run_import(app.store, source, lag=app.settings.history.lag, progress=advance)
            nothing = bool(told.read and told.rejected) and not (told.new + told.updated + told.unchanged)
            if not as_json:
                name = f"{names[number]}: " if len(names) > 1 else ""
                rejects = Rejects(told.rejected, told.first_lines, told.examples)
                for line in intake_notes(told.notes, rejects, name):
                    say(line)
                if nothing:
                    say(f"error: {name}nothing was stored: all records were rejected")
            lost = lost or nothing
            total.add(told)
    _report(total, time.monotonic() - started, as_json)
    if lost or (strict and total.rejected):
        raise SystemExit(1)


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM ends an import as Ctrl-C does: what is open is closed, a command that is being read is killed."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # only there can it be set
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
                "rejected_examples": total.examples,
                "notes": total.notes,
                "seconds": round(seconds, 3),
                "rows_per_second": rate,
            }
        )
        return
    click.echo(
        f"{count(total.read, 'job')} read in {seconds:.1f} s: {total.new:,} new, {total.updated:,} updated, "
        f"{total.unchanged:,} unchanged, {sum(total.rejected.values()):,} rejected"
    )
