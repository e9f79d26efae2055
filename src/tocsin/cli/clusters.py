"""The clusters that settings name: how each is reached."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tocsin.cli.settings import Context
from tocsin.core.errors import ClusterError, SettingsError
from tocsin.core.settings import ClusterSettings

if TYPE_CHECKING:
    from tocsin.core.intake import JobSource
    from tocsin.sources.rest import SlurmRest
    from tocsin.sources.slurm_cluster import SlurmCluster

__all__ = ["accounting_source", "cluster_named", "live_cluster", "rest_client"]

FIRST_DAYS = 30
OVERLAP = 3600  # accounting may come late: what ended in the last hour before is looked at again


def cluster_named(context: Context, name: str | None) -> tuple[str | None, ClusterSettings]:
    """The cluster that -M names, or the only one in the settings, or this host's own Slurm."""
    known = context.settings.cluster
    if name is not None:
        return name, known.get(name, ClusterSettings())
    if len(known) > 1:
        raise SettingsError(
            f"the settings name {len(known)} clusters: {', '.join(sorted(known))}; choose one with -M"
        )
    return next(iter(known.items()), (None, ClusterSettings()))


def rest_client(cluster: ClusterSettings) -> "SlurmRest":
    """A client of the cluster's slurmrestd, with a token that is renewed in time."""
    from tocsin.sources.rest import SlurmRest
    from tocsin.sources.rest_token import ScontrolToken, TokenFile

    user = cluster.rest_user or getpass.getuser()
    token = TokenFile(cluster.rest_token_file) if cluster.rest_token_file else ScontrolToken()
    return SlurmRest(cluster.rest_url, user=user, token=token, timeout=cluster.timeout)


def live_cluster(context: Context, name: str | None) -> "SlurmCluster":
    """The cluster that is named, or this host's own, reached as its settings say; its `rest` is to be closed."""
    from tocsin.sources.slurm_cluster import SlurmCluster

    name, cluster = cluster_named(context, name)
    if cluster.slurm_conf:
        os.environ["SLURM_CONF"] = cluster.slurm_conf  # Slurm's own commands read it
    rest = rest_client(cluster) if cluster.rest_url else None
    return SlurmCluster(name or host_cluster(cluster.timeout), rest=rest, timeout=cluster.timeout)


def host_cluster(timeout: float) -> str:
    """What Slurm on this host calls its cluster; "cluster" where there is none to ask."""
    from tocsin.sources.commands import run
    from tocsin.sources.slurm_machine import read_config

    try:
        config = read_config(run(["scontrol", "show", "config"], timeout=timeout).decode("utf-8", "replace"))
    except ClusterError:
        return "cluster"
    return config.get("ClusterName", "cluster")


@contextmanager
def accounting_source(
    context: Context, name: str | None, since: int | None, until: int
) -> "Iterator[JobSource]":
    """Accounting of [since, until); without `since`, from where the last import of this cluster ended."""
    from tocsin.sources.rest_accounting import RestAccounting
    from tocsin.sources.sacct import SacctLive
    from tocsin.store.importing import furthest_position

    name, cluster = cluster_named(context, name)
    if cluster.slurm_conf:
        os.environ["SLURM_CONF"] = cluster.slurm_conf  # Slurm's own commands read it
    if since is None:
        kind = f"rest:{cluster.rest_url}:{name}:" if cluster.rest_url else f"sacct-live:{name or ''}:"
        with context.store() as store:
            last = furthest_position(store, kind)
        since = last - OVERLAP if last else until - FIRST_DAYS * 86400
    if cluster.rest_url:
        with rest_client(cluster) as rest:
            yield RestAccounting(rest, since, until, cluster=name)
    else:
        yield SacctLive(since, until, cluster=name, timeout=cluster.timeout)
