"""`tocsin login`: a link that logs a browser in."""

import click

from tocsin.app.app import App
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message

__all__ = ["login"]


@click.command()
@click.option(
    "--socket",
    metavar="PATH",
    help="Socket of the service or of a relay [default: where other commands find the service].",
)
@options.as_json
@click.pass_obj
def login(app: App, socket: str | None, as_json: bool) -> None:
    """Print a link that logs a browser in as you.

    The link works once, for 5 minutes. Whoever opens it is logged in as you: do not share it.
    """
    from tocsin.app.login import login_link

    link = login_link(app, socket)
    if as_json:
        print_json({"url": link.url, "valid_seconds": link.valid_seconds})
        return
    print_line(link.url)
    print_message(f"Open it in your browser within {link.valid_seconds // 60} minutes; it works once.")
