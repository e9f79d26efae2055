"""`tocsin import`: read jobs from logs, tables or a live Slurm into the store."""

from collections.abc import Sequence
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.importing import ImportRequest, import_files, import_slurm
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["import_"]

_files = click.argument("files", nargs=-1, required=True, metavar="FILE...")


@click.group("import")
def import_() -> None:
    """Read jobs into the store.

    A repeated import adds nothing; an import that was killed continues where it stopped.
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
    _finish(import_files(app, ImportRequest(kind="swf", files=files, cluster=cluster)), strict, as_json)


@import_.command()
@_files
@options.comma_separated(
    "-o", "--format", "columns", metavar="COLUMNS", help="Columns of a file without a header line."
)
@options.cluster
@options.time_zone
@options.strict
@options.as_json
@click.pass_obj
def sacct(app: App, /, strict: bool, as_json: bool, **how: Any) -> None:
    """Read the text of `sacct -P` or `sacct --json` from files ("-" is standard input)."""
    _finish(import_files(app, ImportRequest(kind="sacct", **how)), strict, as_json)


@import_.command()
@_files
@click.option("-m", "--mapping", required=True, metavar="NAME|FILE",
              help="slurm-database, f-data, or a mapping file of your own.")  # fmt: skip
@options.cluster
@options.time_zone
@options.strict
@options.as_json
@click.pass_obj
def table(app: App, /, strict: bool, as_json: bool, **how: Any) -> None:
    """Read tables (CSV, CSV.gz, Parquet) by a mapping of their columns."""
    _finish(import_files(app, ImportRequest(kind="table", **how)), strict, as_json)


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
    """Read the accounting of a live Slurm, through slurmrestd if configured, else through sacct.

    Without -S, continues from where the last import of this cluster ended, or 30 days back.
    """
    _finish(import_slurm(app, cluster, starttime, endtime), strict, as_json)


def _finish(done: dict[str, Any], strict: bool, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        print_line(
            f"{count(done['read'], 'job')} read in {done['seconds']:.1f} s: {done['new']:,} new, "
            f"{done['updated']:,} updated, {done['unchanged']:,} unchanged, {sum(done['rejected'].values()):,} rejected"
        )
    if done["failed"] or (strict and done["rejected"]):
        raise SystemExit(1)
