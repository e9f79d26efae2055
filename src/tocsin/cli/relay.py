"""`tocsin relay`: the service's socket on a login node."""

import click

from tocsin.app.app import App
from tocsin.cli.output import print_message

__all__ = ["relay"]


@click.command()
@click.option("--to", "url", required=True, metavar="URL", help="Address of the service: https://host:8642.")
@click.option(
    "--token-file", required=True, metavar="FILE", help="File with the relay's token (tocsin tokens create)."
)
@click.option("--socket", metavar="PATH", help="Unix socket to listen on [default: service.socket].")
@click.option("--ca-file", metavar="FILE", help="Certificates to trust [default: those of this host].")
@click.pass_obj
def relay(app: App, url: str, token_file: str, socket: str | None, ca_file: str | None) -> None:
    """Offer the service to the users of a login node.

    Listens on a unix socket, where the kernel says who is asking, and forwards each request to the service.
    """
    from tocsin.app.service_address import socket_path
    from tocsin.serve.identity.run_relay import run_relay

    settings = app.settings.service
    path = socket or str(socket_path(app))
    print_message(f"relaying {path} to {url}")
    run_relay(url, token_file, path, ca_file=ca_file, settings=settings)
