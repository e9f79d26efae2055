"""`tocsin watch` and `tocsin screen`: verdicts on a live cluster's jobs, and on the store's new ones."""

import click

from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.screen import screen as screen_jobs
from tocsin.app.watch import WatchRequest
from tocsin.app.watch import watch as follow_cluster
from tocsin.cli import options
from tocsin.cli.output import print_line

__all__ = ["screen", "watch"]

_everything = click.option("-a", "--all", "everything", is_flag=True, help="Print ok verdicts, too.")


@click.command()
@options.cluster
@click.option("--demo", is_flag=True, help="Follow the demo cluster; no Slurm is needed.")
@click.option(
    "--speed",
    type=click.FloatRange(min=1, max=100_000),
    default=60.0,
    show_default=True,
    metavar="N",
    help="Demo speed: simulated seconds per real second.",
)
@click.option("--once", is_flag=True, help="Catch up with the cluster, then exit.")
@_everything
@options.as_json
@click.pass_obj
@options.gathered(WatchRequest, "request")
def watch(app: App, request: WatchRequest, everything: bool, as_json: bool) -> None:
    """Follow a cluster and give verdicts on its jobs.

    Prints verdicts that are not ok, one line for all jobs of a user with the same name and problem; stores every verdict.
    Jobs are changed only if policy.mode is act. It may be stopped or killed at any time: the next start catches up.
    """
    follow_cluster(app, request, Output(print_line, everything, as_json))


@click.command()
@click.option("--every", type=click.FloatRange(min=1), metavar="SECONDS", help="Repeat every SECONDS.")
@_everything
@options.as_json
@click.pass_obj
def screen(app: App, every: float | None, everything: bool, as_json: bool) -> None:
    """Classify new jobs and check them against the allow-list.

    Screens each job in the store that has a script, once, unless `tocsin watch` has screened it. Prints verdicts that
    are not ok, one line for all jobs of a user with the same name and problem. The model for ended jobs is retrained
    once a day (workload.beta_days). Exits with 0 when all new jobs are screened.
    """
    screen_jobs(app, Output(print_line, everything, as_json), every=every)
