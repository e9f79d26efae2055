"""`tocsin traces watch`: verdicts on running jobs whose traces are not normal."""

import click

from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.traces_watch import TraceWatchRequest, watch_traces
from tocsin.cli import options
from tocsin.cli.output import print_line

__all__ = ["watch"]


@click.command()
@options.cluster
@click.option(
    "--every",
    type=click.FloatRange(min=1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Read the newest traces every SECONDS.",
)
@click.option("--once", is_flag=True, help="Catch up with the newest traces, then exit.")
@click.option("-a", "--all", "everything", is_flag=True, help="Print ok verdicts, too.")
@options.as_json
@click.pass_obj
@options.gathered(TraceWatchRequest, "request")
def watch(app: App, request: TraceWatchRequest, everything: bool, as_json: bool) -> None:
    """Warn when the traces of a running job become abnormal.

    Reads the newest traces from Prometheus or the agents (traces.prometheus_url, traces.agents), keeps them, and scores
    them with the model in use. Each job raises one alarm, which is updated when something changes; alarms with one cause
    share a line. It runs beside `tocsin watch`. No job is held or changed. It may be stopped or killed at any time: the next
    start catches up.
    """  # fmt: skip
    watch_traces(app, request, Output(print_line, everything, as_json))
