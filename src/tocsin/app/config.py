"""`config check`: whether the settings, and the files they name, can be used."""

from pathlib import Path

from tocsin.app.allow import allow_file, operations
from tocsin.app.app import App
from tocsin.app.policy import action_policy
from tocsin.app.sinks import check_sinks
from tocsin.core.errors import SettingsError
from tocsin.core.settings import ClusterSettings, without_password

__all__ = ["check_settings"]


def check_settings(app: App) -> None:
    """Raise the error of the first setting that cannot be used."""
    from tocsin.sources.secrets import read_secret

    for line in app.resolved[1]:
        if line.secret and line.value:
            read_secret(Path(line.value))
    _check_workload(app)
    check_sinks(app)
    action_policy(app)
    for name, cluster in app.settings.cluster.items():
        app.zone(name)
        _check_cluster(name, cluster)
    if app.settings.store.url:
        from tocsin.store.database import checked_address

        checked_address(app.settings.store.url)


def _check_workload(app: App) -> None:
    """The allow-list file must be valid."""
    from tocsin.app.allow_list_reader import read
    from tocsin.judge.allow_file import parse

    if file := allow_file(app):
        parse(read(file), file, known=operations(app), zone=app.zone())


def _check_cluster(name: str, cluster: ClusterSettings) -> None:
    if cluster.rest_url and not cluster.rest_url.startswith(("http://", "https://", "unix:/")):
        raise SettingsError(
            f'cluster.{name}.rest_url is "{without_password(cluster.rest_url)}"; write http://host:6820 or unix:/path'
        )
    if cluster.slurm_conf and not Path(cluster.slurm_conf).is_file():
        raise SettingsError(f'cluster.{name}.slurm_conf is "{cluster.slurm_conf}", which does not exist')
    if not cluster.timeout:
        raise SettingsError(f"cluster.{name}.timeout is 0; give Slurm at least a second")
