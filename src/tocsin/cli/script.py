"""`tocsin script`: what a job script requests."""

from pathlib import Path
from zoneinfo import ZoneInfo

import click

from tocsin.app.text import count
from tocsin.cli import options
from tocsin.cli.columns import columns
from tocsin.cli.output import print_json, print_line
from tocsin.core.fields import FIELDS

__all__ = ["script"]


@click.command()
@click.argument("file")
@options.as_json
def script(file: str, as_json: bool) -> None:
    """Show what a job script requests.

    Line by line, as its scheduler reads it; nothing in it is run.
    """
    from tocsin.scripts.script import parse, to_json
    from tocsin.scripts.text import read

    found = parse(read(Path(file) if file != "-" else file))
    seen = to_json(found)
    if as_json:
        print_json(seen)
        return
    print_line(
        f"{file}: {seen['scheduler'] or 'no scheduler directives'}, {seen['interpreter'] or 'no interpreter'}"
    )
    refused = {problem["line"] for problem in seen["problems"] if problem["kind"] in ("refused", "unclear")}
    for directive in seen["directives"]:
        field = directive["field"] or "-"
        if not directive["effective"]:
            field += " (not readable)" if directive["line"] in refused else " (overridden)"
        print_line(
            f"{directive['line']:>5}  {directive['option']:<24} {directive['value'] or '':<32} {field}"
        )
    for problem in seen["problems"]:
        print_line(f"{problem['line']:>5}  ! {problem['text']}")
    print_line("requests")
    row = dict.fromkeys(FIELDS) | dict(found.request)
    for name in found.request:
        print_line(f"       {name:<24} {columns(name, ZoneInfo('UTC'))[0].value(row)}")
    print_line(f"{count(len(seen['commands']), 'line')} of commands")
