"""`tocsin schema`: the JSON Schema of tocsin's output."""

import click

from tocsin.cli.output import print_json

__all__ = ["schema"]


@click.command()
@click.argument("what", type=click.Choice(["verdict"]))
def schema(what: str) -> None:
    """Print the JSON Schema of a verdict."""
    from tocsin.core.schema import verdict_schema

    print_json({"verdict": verdict_schema}[what]())
