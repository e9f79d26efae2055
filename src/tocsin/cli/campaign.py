"""`tocsin campaign`: labelled jobs, recorded or simulated, to train and test the trace model."""

from pathlib import Path
from typing import Any

import click

from tocsin.app.app import App
from tocsin.app.campaign import SPLITS, SimulateRequest, show_campaign, simulate_campaign
from tocsin.app.campaign_run import RunRequest, run_campaign
from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.output import Column, print_json, print_line, print_message, print_table

__all__ = ["campaign"]

_folder = click.argument("folder", metavar="OUT", type=click.Path(path_type=Path))
_split = click.option(
    "--split", type=click.Choice(SPLITS), default="train", show_default=True, help="What the campaign is for."
)
_types = options.comma_separated(
    "--types", metavar="TYPES", help="Job types, separated by commas [default: all]."
)


@click.group()
def campaign() -> None:
    """Record or simulate labelled jobs for trace models."""


@campaign.command()
@_folder
@_split
@click.option("--nodes", type=click.IntRange(1, 100_000), default=5, show_default=True, help="Nodes.")
@click.option(
    "--cpus", type=click.IntRange(1, 4096), default=32, show_default=True, help="CPU threads of a node."
)
@click.option(
    "--seconds",
    type=click.IntRange(120, 86400),
    default=1200,
    show_default=True,
    help="Length of the campaign.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the simulation."
)
@_types
@options.gathered(SimulateRequest, "request")
@options.as_json
@click.pass_obj
def simulate(app: App, request: SimulateRequest, as_json: bool) -> None:
    """Simulate a campaign, and write it to the new folder OUT.

    The jobs are made up: a figure measured on them is no measure of accuracy on a real cluster. The same seed gives the
    same campaign. Memory does not grow with the number of nodes.
    """
    report = simulate_campaign(app, request)
    if as_json:
        print_json(report)
    else:
        _print_summary(report)


@campaign.command()
@_folder
@click.option("--split", type=click.Choice(SPLITS), required=True, help="What the campaign is for.")
@options.comma_separated("--types", metavar="TYPES", help="Job types, separated by commas; a type may come twice "
                         "[default: all that fit a node].")  # fmt: skip
@click.option(
    "--seconds", type=click.IntRange(5, 86400), default=300, show_default=True, help="Length of each job."
)
@options.comma_separated(
    "--agents",
    metavar="ADDRESSES",
    help="tocsin-agent on each node, such as n1:9814 [default: traces.agents of the settings, else this host is sampled].",
)
@click.option("-w", "--nodelist", metavar="NODES", help="Run on these nodes only, as in sbatch.")
@click.option(
    "--scratch",
    metavar="FOLDER",
    default="/var/tmp",  # noqa: S108  # a folder on compute nodes
    show_default=True,
    help="Folder on the nodes in which jobs read and write files.",
)
@options.cluster
@click.option("--note", multiple=True, metavar="TEXT", help="Note for the card; may be given several times.")
@click.argument("sbatch", nargs=-1, metavar="[-- OPTIONS OF SBATCH]")
@options.gathered(RunRequest, "request")
@options.as_json
@click.pass_obj
def run(app: App, request: RunRequest, as_json: bool) -> None:
    """Submit labelled jobs to Slurm, record them, and write the campaign to OUT.

    Each job ends after --seconds, and uses at most 256 MiB of disk. If OUT holds a campaign of the same split, the new
    jobs are added to it. Ctrl-C cancels the jobs of this campaign and keeps those that have ended.
    """
    report = run_campaign(app, request)
    if as_json:
        print_json(report)
    else:
        _print_summary(report)
    for problem in report["problems"]:
        print_message(problem)
    if report["interrupted"] or not report["jobs"]:
        raise SystemExit(1)


@campaign.command()
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
def show(folder: Path, as_json: bool) -> None:
    """Show what ran in the campaign in FOLDER, and its channels by job type."""
    report = show_campaign(folder)
    if as_json:
        print_json(report)
        return
    _print_summary(report)
    for note in report["notes"]:
        print_line(note)
    print_line()
    columns = [
        Column("type", lambda row: row["label"], -16),
        Column("channel", lambda row: row["channel"], -18),
        Column("seconds", lambda row: f"{row['seconds']:,}", 10),
        Column("mean", lambda row: _figure(row["mean"]), 12),
        Column("std", lambda row: _figure(row["std"]), 12),
    ]
    rows = [row for row in report["channels"] if row["mean"] is not None]
    print_table(rows, columns, header=True, parsable=False)


def _print_summary(report: dict[str, Any]) -> None:
    jobs = report["jobs"]
    print_line(
        f"{report['folder']}: {report['origin']} campaign for {report['split']}, {count(report['nodes'], 'node')}, "
        f"{count(report['seconds'], 'second')} from {report['first']}"
    )
    if report["kernel"]:
        print_line(f"kernel {report['kernel']}, {report['processor']}, Slurm {report['slurm']}")
    each = ", ".join(f"{number} {label}" for label, number in jobs.items())
    print_line(f"{count(sum(jobs.values()), 'job')}: {each}")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
