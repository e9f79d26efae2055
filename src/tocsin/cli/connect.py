"""`tocsin connect`: publish job events to other systems."""

import click

from tocsin.app.app import App
from tocsin.app.connect import ConnectRequest
from tocsin.app.connect import slurm_to_kafka as publish
from tocsin.cli import options

__all__ = ["connect"]


@click.group()
def connect() -> None:
    """Publish job events to other systems."""


@connect.command("slurm-to-kafka")
@options.cluster
@click.option(
    "--topic", default="tocsin.jobs", show_default=True, metavar="NAME", help="Topic to write job events to."
)
@click.option("--scripts", is_flag=True, help="Send the text of job scripts, too.")
@click.option("--once", is_flag=True, help="Publish what is there, then exit.")
@click.pass_obj
@options.gathered(ConnectRequest, "request")
def slurm_to_kafka(app: App, request: ConnectRequest) -> None:
    """Publish the job events of a cluster to Kafka.

    Each job is published when it is first seen, when it starts and when it has ended, keyed by job. The brokers are those of
    [kafka] in the settings. It may be stopped or killed at any time: the next start catches up, and a repeated event is the
    same to the byte.
    """
    publish(app, request)
