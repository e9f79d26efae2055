"""`tocsin config`: the settings as they stand, and whether they are sound."""

from pathlib import Path

import click

from tocsin.app.app import App
from tocsin.cli import options
from tocsin.cli.output import print_json, say
from tocsin.core.errors import SettingsError
from tocsin.core.settings import ClusterSettings

__all__ = ["config"]


@click.group()
def config() -> None:
    """Show and check the settings."""


@config.command()
@options.as_json
@click.pass_obj
def show(app: App, as_json: bool) -> None:
    """Print every setting with its value and the place it comes from."""
    _, lines = app.resolved
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
def check(app: App) -> None:
    """Read all settings and the files they name; exit 1 with a sentence for what is wrong."""

    from tocsin.sources.secrets import read_secret

    _, lines = app.resolved
    for line in lines:
        if line.secret and line.value:
            read_secret(Path(line.value))
    _check_workload(app)
    for name, cluster in app.settings.cluster.items():
        app.zone(name)
        _check_cluster(name, cluster)
    if app.settings.store.url:
        from tocsin.store.database import checked_address

        checked_address(app.settings.store.url)
    set_lines = [line for line in lines if line.origin != "default"]
    say(f"the settings are sound: {len(set_lines)} set, {len(lines) - len(set_lines)} at their defaults")


def _check_workload(app: App) -> None:
    """The allow-list is read as a whole; the log need not be there yet, but its folder must."""
    from tocsin.app.allow import allow_file, operations
    from tocsin.judge.allow_file import parse, read

    if file := allow_file(app):
        parse(read(file), file, known=operations(app), zone=app.zone())
    log = app.settings.workload.log_file
    if log and not Path(log).parent.is_dir():
        raise SettingsError(
            f'workload.log_file is "{log}", and there is no folder {Path(log).parent}; make it'
        )


def _check_cluster(name: str, cluster: ClusterSettings) -> None:
    if cluster.rest_url and not cluster.rest_url.startswith(("http://", "https://", "unix:/")):
        raise SettingsError(
            f'cluster.{name}.rest_url is "{cluster.rest_url}"; write http://host:6820 or unix:/path'
        )
    if cluster.slurm_conf and not Path(cluster.slurm_conf).is_file():
        raise SettingsError(f'cluster.{name}.slurm_conf is "{cluster.slurm_conf}", and there is no such file')
    if not cluster.timeout:
        raise SettingsError(f"cluster.{name}.timeout is 0; give Slurm at least a second")


def _shown(value: object) -> str:
    return '""' if value == "" else str(value)
