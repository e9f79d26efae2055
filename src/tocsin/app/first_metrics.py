"""First metrics of jobs, measured from the stored samples of their nodes."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tocsin.app.app import App
from tocsin.core.units import MAX_INSTANT

if TYPE_CHECKING:
    import polars as pl

    from tocsin.store.windows import WindowStore

__all__ = ["measure_due", "measure_stored"]

_CHUNK = 3600
"""Seconds of samples per read."""


def measure_due(app: App, cluster: str) -> "Callable[[pl.DataFrame], None]":
    """For `watch`: measures jobs, given by key, when they reach `early`."""
    from tocsin.app.traces_windows import window_store
    from tocsin.store import watching

    kept = window_store(app)

    def measure(keys: "pl.DataFrame") -> None:
        if cluster in kept.clusters():
            _measure(app, kept, cluster, watching.jobs_named(app.store, keys))

    return measure


def measure_stored(app: App) -> int:
    """Measure the jobs that were not measured at `early`, such as imported ones; returns how many."""
    import polars as pl

    from tocsin.app.traces_windows import window_store
    from tocsin.store.first_metrics import unmeasured

    kept, count = window_store(app), 0
    for cluster in kept.clusters():
        jobs = unmeasured(app.store, cluster, 0, MAX_INSTANT)
        hours = jobs.with_columns(hour=pl.col("start") // _CHUNK).partition_by("hour", include_key=False)
        for number, some in enumerate(hours):
            app.progress("measuring jobs", number, len(hours))
            count += _measure(app, kept, cluster, some)
        if hours:
            app.progress("measuring jobs", len(hours), len(hours))
    return count


def _measure(app: App, kept: "WindowStore", cluster: str, jobs: "pl.DataFrame") -> int:
    from tocsin.core.stages import EARLY_SECONDS
    from tocsin.history.first_metrics import first_metrics
    from tocsin.history.nodes import nodes_of
    from tocsin.store.first_metrics import fill

    started = jobs["start"].drop_nulls()
    if started.is_empty():
        return 0
    first, last = int(started.min()), int(started.max())  # type: ignore[arg-type]  # instants
    lists = jobs["node_list"].unique().to_list()
    nodes = None if None in lists else {node for text in lists for node in nodes_of(text)}
    samples = kept.job_samples(cluster, first, last + EARLY_SECONDS, nodes)
    return fill(app.store, first_metrics(jobs, samples))
