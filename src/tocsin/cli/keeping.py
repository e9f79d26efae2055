"""`tocsin prune` and `tocsin backup`: what is kept, and a copy of it."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from tocsin.cli import options
from tocsin.cli.output import count, print_json, say
from tocsin.cli.settings import Context
from tocsin.core.errors import SettingsError

__all__ = ["backup", "prune"]


@click.command()
@click.option(
    "--days", type=click.IntRange(min=1), metavar="N", help="Keep jobs that ended in the last N days."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@options.as_json
@click.pass_obj
def prune(context: Context, days: int | None, dry_run: bool, as_json: bool) -> None:
    """Remove jobs that ended long ago.

    Their verdicts and scripts go with them."""
    from tocsin.store.retention import prune as remove

    keep = days or context.settings.store.keep_days
    if not keep:
        raise SettingsError("store.keep_days is 0: all is kept for ever; name a number with --days to prune")
    with context.store() as store:
        before = int(time.time()) - keep * 86400
        removed = asdict(remove(store, context.folder, before=before, dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, **removed})
        return
    for what, number in removed.items():
        click.echo(f"{count(number, what.rstrip('s'))} {'would be removed' if dry_run else 'removed'}")


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.pass_obj
def backup(context: Context, target: Path) -> None:
    """Copy the store, even while it is written to."""
    from tocsin.store.retention import backup as copy

    with context.store() as store:
        made = copy(store, context.folder, target)
    say(f"the backup is {made}")
