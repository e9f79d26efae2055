"""The clusters of the settings and how to reach each of them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from threading import Lock
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.errors import ClusterError, InputError, NotFound, SettingsError
from tocsin.core.settings import ClusterSettings, without_password
from tocsin.store.home import user_name

if TYPE_CHECKING:
    from tocsin.core.intake import JobSource
    from tocsin.sources.rest import SlurmRest
    from tocsin.sources.slurm_cluster import SlurmCluster

__all__ = [
    "MISREAD",
    "UNNAMED",
    "WITHOUT_REST",
    "accounting_source",
    "cluster_named",
    "host_cluster",
    "live_cluster",
    "require_cluster",
    "rest_client",
    "slurm_confs",
]

DEMO = "demo"
UNNAMED = "cluster"
"""The name of a cluster whose Slurm reports none."""
WITHOUT_REST = "until it answers, remove rest_url from the settings; tocsin then uses Slurm's client commands"
MISREAD = (
    "upgrade tocsin; until then, remove rest_url from the settings; tocsin then uses Slurm's client commands"
)
"""The next step when slurmrestd is newer than tocsin."""
_LIVE_RETRIES = 10.0
"""Seconds, as Slurm's commands have (MessageTimeout). Whoever watches or waits asks again anyway, and must know that a
slurmctld hangs: slurmrestd reports that after 10 s, and five tries took a minute."""
_IMPORT_RETRIES = 120.0
"""Seconds: an import asks once, and should survive the restart of a daemon."""
_ASKING = Lock()
"""Held while this host's Slurm is asked for its name. It is global because an App is pickled for child processes."""
_ASK_AGAIN = 60.0
FIRST_DAYS = 30
OVERLAP = 3600  # seconds read again, since accounting may arrive late


def cluster_named(app: App, name: str | None) -> tuple[str | None, ClusterSettings]:
    """The named cluster, or the only one in the settings, or this host's own Slurm (without a name)."""
    known = app.settings.cluster
    if name is not None:
        return name, known.get(name, ClusterSettings())
    if len(known) > 1:
        raise SettingsError(
            f"the settings name {len(known)} clusters: {', '.join(sorted(known))}; choose one with -M"
        )
    return next(iter(known.items()), (None, ClusterSettings()))


def require_cluster(app: App, name: str) -> None:
    """An error for a name that is in neither the settings nor the store, and is not this host's cluster."""
    from tocsin.store.jobs import cluster_names

    known = sorted({*app.settings.cluster, *cluster_names(app.store)})
    if name not in known and name != _cluster_of_host(app):
        close = get_close_matches(name, {*known, "demo"}, n=1)
        suggestion = f' did you mean "{close[0]}"?' if close else ""
        raise NotFound(f'no cluster "{name}";{suggestion} known clusters: {", ".join(known) or "none"}')


def _cluster_of_host(app: App) -> str:
    """The name of this host's cluster, asked at most once a minute: requests to a service may name any cluster."""
    with _ASKING:
        until, name = app.host_cluster
        if time.monotonic() >= until:
            name = host_cluster(ClusterSettings().timeout)
            app.host_cluster = time.monotonic() + _ASK_AGAIN, name
        return name


def slurm_confs(app: App) -> list[str]:
    """The slurm.conf of each Slurm in the settings, without duplicates; an empty one is this host's."""
    return list(dict.fromkeys(cluster.slurm_conf for cluster in app.settings.cluster.values())) or [""]


def rest_client(cluster: ClusterSettings, *, retry_seconds: float = _LIVE_RETRIES) -> "SlurmRest":
    """A client of the cluster's slurmrestd, whose token is renewed in time. It retries what may pass for these seconds."""
    from tocsin.sources.rest import SlurmRest
    from tocsin.sources.rest_token import ScontrolToken, TokenFile

    user = cluster.rest_user or user_name()
    token = (
        TokenFile(cluster.rest_token_file)
        if cluster.rest_token_file
        else ScontrolToken(slurm_conf=cluster.slurm_conf)
    )
    return SlurmRest(
        cluster.rest_url, user=user, token=token, timeout=cluster.timeout, retry_seconds=retry_seconds
    )


@contextmanager
def live_cluster(app: App, name: str | None, *, guess: bool = True) -> "Iterator[SlurmCluster]":
    """The named cluster, or this host's own, reached as its settings say.

    Where Slurm does not report the cluster's name, it is called "cluster"; without `guess`, that is an error.
    """
    from tocsin.sources.slurm_cluster import SlurmCluster

    name, cluster = cluster_named(app, name)
    if name == DEMO and name not in app.settings.cluster:
        raise InputError(
            "the demo cluster is simulated; there is no Slurm that could read or change its jobs"
        )
    if name is None:
        name = host_cluster(cluster.timeout) if guess else _cluster_name(cluster.timeout)
        if name is None:
            raise ClusterError("Slurm does not report the name of its cluster; give it with -M")
    if not cluster.rest_url:
        yield SlurmCluster(name, slurm_conf=cluster.slurm_conf, timeout=cluster.timeout)
        return
    with rest_client(cluster) as rest:
        yield SlurmCluster(name, rest=rest, slurm_conf=cluster.slurm_conf, timeout=cluster.timeout)


def host_cluster(timeout: float) -> str:
    """The name of this host's cluster; "cluster" where there is no Slurm to ask."""
    try:
        return _cluster_name(timeout) or UNNAMED
    except ClusterError:
        return UNNAMED


def _cluster_name(timeout: float) -> str | None:
    from tocsin.sources.commands import run
    from tocsin.sources.slurm_machine import read_config

    text = run(["scontrol", "show", "config"], timeout=timeout).decode("utf-8", "replace")
    return read_config(text).get("ClusterName")


@contextmanager
def accounting_source(app: App, name: str | None, since: int | None, until: int) -> "Iterator[JobSource]":
    """Accounting of [since, until); without `since`, from the end of this cluster's last import."""
    from tocsin.sources.rest_accounting import RestAccounting
    from tocsin.sources.sacct import SacctLive
    from tocsin.store.importing import furthest_position

    name, cluster = cluster_named(app, name)
    if since is None:
        kind = (
            f"rest:{without_password(cluster.rest_url)}:{name}:"
            if cluster.rest_url
            else f"sacct-live:{name or ''}:"
        )
        last = furthest_position(app.store, kind)
        since = last - OVERLAP if last else until - FIRST_DAYS * 86400
    if cluster.rest_url:
        with rest_client(cluster, retry_seconds=_IMPORT_RETRIES) as rest:
            yield RestAccounting(rest, since, until, cluster=name)
    else:
        conf = cluster.slurm_conf
        yield SacctLive(since, until, cluster=name, slurm_conf=conf, timeout=cluster.timeout)
