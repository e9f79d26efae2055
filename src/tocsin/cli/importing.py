"""`tocsin import`: read jobs from logs, tables or a live Slurm into the store."""

from collections.abc import Sequence
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.importing import import_files, import_slurm
from tocsin.app.logs import LogRequest
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["import_"]


class _FilesByDefault(click.Group):
    """`import FILE` is short for `import files FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *self.get_help_option_names(ctx)):
            args = ["files", *args]
        return super().parse_args(ctx, args)


@click.group("import", cls=_FilesByDefault, subcommand_metavar="FILE... | COMMAND [ARGS]...")
def import_() -> None:
    """Read jobs into the store.

    `tocsin import FILE...` reads files of any format, `tocsin import slurm` a live Slurm. A repeated import adds nothing;
    an import that was killed continues where it stopped.
    """


@import_.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.log_format
@options.strict
@options.as_json
@click.pass_obj
def files(app: App, /, files: Sequence[str], strict: bool, as_json: bool, **how: Any) -> None:
    """Read files ("-" is standard input), plain or gzip; the format is found from the content.

    Formats: Standard Workload Format; text and JSON of sacct; logs of jobcomp/filetxt; accounting logs of PBS, LSF
    (lsb.acct) and Grid Engine; tables (CSV, Parquet) by the names of their columns or by a mapping. Name the cluster with
    -M if the file does not.
    """
    _finish(import_files(app, files, LogRequest(**how)), strict, as_json)


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
