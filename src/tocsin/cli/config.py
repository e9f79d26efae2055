"""`tocsin config`: show and check the settings."""

import click

from tocsin.app.app import App
from tocsin.app.config import check_settings
from tocsin.cli import options
from tocsin.cli.output import print_json, print_line, print_message

__all__ = ["config"]


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command()
@options.as_json
@click.pass_obj
def show(app: App, as_json: bool) -> None:
    """Print every setting with its value and origin."""
    _, lines = app.resolved
    if as_json:
        print_json(
            {line.name: {"value": line.value, "origin": line.origin, "doc": line.doc} for line in lines}
        )
        return
    for line in lines:
        value = '""' if line.value == "" else str(line.value)
        if isinstance(line.value, bool):
            value = value.lower()
        print_line(f"{line.name:<32} {value:<24} {line.origin}")
        print_line(f"    {line.doc}")


@config.command()
@click.pass_obj
def check(app: App) -> None:
    """Read all settings and the files they name; exit with 1 if something is wrong."""
    check_settings(app)
    _, lines = app.resolved
    changed = sum(line.origin != "default" for line in lines)
    print_message(f"the settings are valid: {changed} set, {len(lines) - changed} at their defaults")


@config.command()
def example() -> None:
    """Print a settings file that explains every setting."""
    from tocsin.core.settings_example import example_settings

    for line in example_settings().splitlines():
        print_line(line)
