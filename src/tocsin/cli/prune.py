"""`tocsin prune` and `tocsin backup`: remove old jobs, and copy the store."""

import time
from dataclasses import asdict
from pathlib import Path

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message
from tocsin.core.errors import SettingsError

__all__ = ["backup", "prune"]


@click.command()
@click.option(
    "--days",
    type=click.IntRange(min=1),
    metavar="N",
    help="Keep jobs that ended in the last N days, and traces of the last N days [default: store.keep_days, traces.keep_days].",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@options.as_json
@click.pass_obj
def prune(app: App, days: int | None, dry_run: bool, as_json: bool) -> None:
    """Remove jobs that ended long ago, and old traces.

    The verdicts and scripts of these jobs are removed, too. Jobs of open cases are kept. Without --days, jobs are kept
    for store.keep_days and traces for traces.keep_days.
    """
    from tocsin.store.retention import prune as remove

    keep, keep_traces = (
        days or kept for kept in (app.settings.store.keep_days, app.settings.traces.keep_days)
    )
    if not keep and not keep_traces:
        raise SettingsError(
            "store.keep_days and traces.keep_days are 0, so everything is kept; use --days N to prune"
        )
    if not keep:
        print_message("store.keep_days is 0, so jobs are kept; use --days N to prune them")
    now = int(time.time())
    removed = asdict(
        remove(
            app.store,
            app.home,
            before=now - keep * 86400 if keep else 0,
            traces_before=now - keep_traces * 86400 if keep_traces else 0,
            dry_run=dry_run,
        )
    )
    if as_json:
        print_json({"dry_run": dry_run, **removed})
        return
    for what, number in removed.items():
        print_line(
            f"{count(number, what.rstrip('s').replace('_', ' '))} {'would be removed' if dry_run else 'removed'}"
        )


@click.command()
@click.argument("target", metavar="FOLDER", type=click.Path(path_type=Path))
@options.as_json
@click.pass_obj
def backup(app: App, target: Path, as_json: bool) -> None:
    """Copy store, scripts and models into a new folder.

    FOLDER must not exist yet. tocsin may be running; the copy is consistent.
    """
    from tocsin.store.retention import backup as copy

    made = copy(app.store, app.home, target)
    print_message(f"wrote the backup to {made}")
    if as_json:
        print_json({"backup": str(made)})
