"""`tocsin demo`: a small simulated cluster, imported and reported on."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.demo import demo as run_demo
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line

__all__ = ["demo"]

_BAR = 30


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulation.")
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    default=30,
    show_default=True,
    metavar="N",
    help="Days to simulate.",
)
@options.as_json
@click.pass_obj
def demo(app: App, seed: int, days: int, as_json: bool) -> None:
    """Simulate a small cluster and report on its jobs.

    Needs no root, no Slurm and no network. The jobs are made up: nothing here measures accuracy.
    """
    report = run_demo(app, seed=seed, days=days)
    if as_json:
        print_json(report)
        return
    done = report["import"]
    print_line(
        f"The demo cluster ran for {count(days, 'day')}: {count(done['read'], 'job')}, {done['new']:,} of them new."
    )
    print_line()
    for line in _report(report):
        print_line(line)
    me = _command() + (f" --home {app.folder}" if app.folder else "")
    print_line()
    print_line(f"Next: {me} jobs -M demo -s OOM     list jobs that ran out of memory")
    print_line(f"      {me} job ID -M demo          show one job")
    print_line(f"      {me} doctor                  check what is needed to watch a real Slurm")


def _command() -> str:
    """How tocsin was called, if it is not on the path: in a .venv that is not active, or as a module."""
    if shutil.which("tocsin"):
        return "tocsin"
    return f"{sys.executable} -m tocsin" if Path(sys.argv[0]).name == "__main__.py" else sys.argv[0]


def _report(report: dict[str, Any]) -> Iterator[str]:
    others = report["jobs"] > report["import"]["read"]
    yield (
        f"How jobs ended, with those of earlier runs: {report['jobs']:,} jobs" if others else "How jobs ended"
    )
    for outcome, number in report["outcomes"].items():
        share = number / max(1, report["ended"])
        yield f"  {outcome:<14} {number:>7,}  {share:>6.1%}  {'█' * max(1, round(share * _BAR))}"
    if alive := report["jobs"] - report["ended"]:
        yield f"  {'still running or pending':<14} {alive:,}"
    lost, hours = report["lost_node_hours"], report["node_hours"]
    yield ""
    yield f"Failed jobs took {lost:,.0f} of {hours:,.0f} node-hours ({lost / hours if hours else 0:.0%})."
    yield ""
    yield "Users with the most failed jobs"
    yield f"  {'user':<12} {'jobs':>7} {'failed':>7} {'share':>7}  most often"
    for user in report["users"]:
        share = user["failed"] / user["jobs"]
        yield f"  {user['user']:<12} {user['jobs']:>7,} {user['failed']:>7,} {share:>7.0%}  {user['mostly']}"
