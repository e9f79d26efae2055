"""`tocsin config`: the settings as they stand, and whether they are sound."""

import click

from tocsin.cli import options
from tocsin.cli.output import print_json, say
from tocsin.cli.settings import Context

__all__ = ["config"]


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command()
@options.as_json
@click.pass_obj
def show(context: Context, as_json: bool) -> None:
    """Print every setting with its value and the place it comes from."""
    _, lines = context.resolved
    if as_json:
        print_json(
            {line.name: {"value": line.value, "origin": line.origin, "doc": line.doc} for line in lines}
        )
        return
    for line in lines:
        click.echo(f"{line.name:<32} {_shown(line.value):<24} {line.origin}")
        click.echo(f"    {line.doc}")


@config.command()
@click.pass_obj
def check(context: Context) -> None:
    """Read all settings and the files they name; exit 1 with a sentence for what is wrong."""
    from pathlib import Path

    from tocsin.sources.secrets import read_secret

    _, lines = context.resolved
    for line in lines:
        if line.name.endswith("_file") and line.value:
            read_secret(Path(line.value))
    for cluster in context.settings.cluster:
        options.zone_of(context, cluster)
    set_lines = [line for line in lines if line.origin != "default"]
    say(f"the settings are sound: {len(set_lines)} set, {len(lines) - len(set_lines)} at their defaults")


def _shown(value: object) -> str:
    return '""' if value == "" else str(value)
