"""How the jobs of a cluster ended recently, and what failures cost."""

import time
from typing import Any

from tocsin.app.app import App
from tocsin.app.clusters import require_cluster
from tocsin.app.demo import outcome_report
from tocsin.core.units import format_instant

__all__ = ["statistics", "stored_clusters"]

DAY = 86_400
_FIELDS = ("user", "submit", "end", "outcome", "state", "elapsed", "alloc_nodes")


def stored_clusters(app: App) -> list[str]:
    """The clusters that have jobs in the store."""
    from tocsin.store.jobs import cluster_names

    return cluster_names(app.store)


def statistics(app: App, cluster: str, *, days: int, now: float | None = None) -> dict[str, Any]:
    """For the jobs alive in the last days: outcomes, node-hours, and the users with most failures."""
    import polars as pl

    from tocsin.store.jobs import Filter, load

    require_cluster(app, cluster)
    until = int(time.time() if now is None else now)
    jobs = load(app.store, Filter(clusters=[cluster], since=until - days * DAY), list(_FIELDS))
    alive = jobs.filter(pl.col("outcome").is_null())
    states = dict(alive["state"].drop_nulls().value_counts().iter_rows())
    return {
        "cluster": cluster,
        "since": format_instant(until - days * DAY),
        "until": format_instant(until),
        "states": dict(sorted(states.items())),
        **outcome_report(jobs),
    }
