"""`tocsin demo`: a small cluster of our own, imported and reported on."""

import shutil
import sys

import click

from tocsin.app.app import App
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, progress

__all__ = ["demo"]


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed is another month.")
@click.option(
    "--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How long it has run."
)
@options.as_json
@click.pass_obj
def demo(app: App, seed: int, days: int, as_json: bool) -> None:
    """Run a small cluster of our own and report on it.

    It needs no root, no Slurm and no network. Its jobs are made up: nothing here is a measure of accuracy.
    """
    from tocsin.cli.report import first_report
    from tocsin.demo.cluster import DemoCluster
    from tocsin.store.importing import run_import
    from tocsin.store.jobs import Filter, load
    from tocsin.store.scriptfiles import save_script

    cluster = DemoCluster(seed=seed, days=days)
    source = cluster.history()
    scripts = app.home.prepare().scripts
    with progress("running the demo cluster", source.total, quiet=as_json) as advance:
        summary = run_import(app.store, source, lag=app.settings.history.lag, progress=advance)
    for _, text in cluster.scripts():
        save_script(scripts, text)
    frame = load(app.store, Filter(clusters=[cluster.name]))
    report = first_report(frame)
    if as_json:
        print_json({"import": {"read": summary.read, "new": summary.new}, **report.to_json()})
        return
    click.echo(
        f"The demo cluster ran for {count(days, 'day')}: {count(summary.read, 'job')}, {summary.new:,} of them new.\n"
    )
    click.echo(report.to_text())
    me = (
        "tocsin" if shutil.which("tocsin") else sys.argv[0]
    )  # in a .venv that is not active it is not on the path
    me += f" --home {app.folder}" if app.folder else ""
    click.echo(f"\nNext: {me} jobs -M demo -s OOM     the jobs that ran out of memory")
    click.echo(f"      {me} job ID -M demo          all that is known of one")
    click.echo(f"      {me} doctor                  what tocsin needs to watch a real Slurm")
