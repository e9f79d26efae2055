"""`tocsin serve`: the service with its API and pages; the one command that starts it."""

import click

from tocsin.app.app import App
from tocsin.app.loop import Output
from tocsin.app.service import ServiceRequest
from tocsin.cli.output import print_line, print_message
from tocsin.core.errors import NotFound

__all__ = ["serve"]


@click.command()
@click.option("--demo", is_flag=True, help="Serve the demo cluster; no Slurm is needed.")
@click.option(
    "--speed",
    type=click.FloatRange(min=1, max=100_000),
    default=60.0,
    show_default=True,
    metavar="N",
    help="Demo speed: simulated seconds per real second.",
)
@click.option(
    "--watch/--no-watch",
    default=True,
    help="Follow the clusters in this process [default], or leave it to `tocsin watch`.",
)
@click.option("--for", "seconds", type=click.FloatRange(min=1), metavar="SECONDS", help="Stop after SECONDS.")
@click.pass_obj
def serve(app: App, demo: bool, speed: float, watch: bool, seconds: float | None) -> None:
    """Run the service: follow clusters and answer questions.

    It answers by HTTP and on a unix socket; its API is described in /openapi.json.

    Prints verdicts that are not ok, as `tocsin watch` does. Jobs are changed only if policy.mode is act.
    SIGTERM and Ctrl-C stop it; the next start continues where it stopped.
    """
    if demo and not watch:
        raise click.UsageError("--demo follows the demo cluster; leave out --no-watch")
    try:
        from tocsin.serve.server import run
    except ModuleNotFoundError as error:
        raise NotFound(f"{error.name} is missing; install it with: pip install 'tocsin[serve]'") from None

    if demo:
        from tocsin.app.demo_service import prepare

        prepare(app)

    def listening(socket: str, url: str | None) -> None:
        print_message(f"answering on {socket}" + (f" and {url}" if url else ""))
        if demo and url:
            print_message(
                f"everybody on this host has operator rights in this demo; open {url} (press Ctrl-C to stop)"
            )

    request = ServiceRequest(watch=watch, demo=demo, speed=speed)
    run(app, request, Output(print_line, unknown=not demo), seconds=seconds, listening=listening)
