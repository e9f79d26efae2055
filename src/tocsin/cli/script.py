"""`tocsin script`: what the parser saw in a job script."""

from pathlib import Path

import click

from tocsin.cli import options
from tocsin.cli.output import print_json

__all__ = ["script"]


@click.command()
@click.argument("file")
@options.as_json
def script(file: str, as_json: bool) -> None:
    """Show what a job script asks for.

    Line by line, as its scheduler reads it; nothing in it is run.
    """
    from tocsin.scripts.script import parse, to_json
    from tocsin.scripts.text import read

    seen = to_json(parse(read(Path(file))))
    if as_json:
        print_json(seen)
        return
    click.echo(
        f"{file}: {seen['scheduler'] or 'no scheduler directives'}, {seen['interpreter'] or 'no interpreter'}"
    )
    for directive in seen["directives"]:
        field = directive["field"] or "-"
        click.echo(
            f"{directive['line']:>5}  {directive['option']:<24} {directive['value'] or '':<32} {field}"
        )
    for problem in seen["problems"]:
        click.echo(f"{problem['line']:>5}  ! {problem['text']}")
    click.echo(f"{len(seen['commands'])} lines of commands")
