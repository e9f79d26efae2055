"""`demo`: run the demo cluster into the store, and report how its jobs ended."""

from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.core.outcomes import TARGETS, Outcome, Target

if TYPE_CHECKING:
    import polars as pl

__all__ = ["demo", "outcome_report"]


def demo(app: App, *, seed: int, days: float) -> dict[str, Any]:
    """Import the jobs and scripts of a demo cluster that ran for some days."""
    from tocsin.demo.cluster import DemoCluster
    from tocsin.store.importing import run_import
    from tocsin.store.jobs import Filter, load
    from tocsin.store.scriptfiles import save_script

    cluster = DemoCluster(seed=seed, days=days)
    source = cluster.history()
    scripts, size = app.home.prepare().scripts, source.total or 1
    summary = run_import(
        app.store,
        source,
        lag=app.settings.history.lag,
        progress=lambda batch: app.progress("running the demo cluster", batch.done, size),
    )
    for _, text in cluster.scripts():
        save_script(scripts, text)
    report = outcome_report(load(app.store, Filter(clusters=[cluster.name])))
    return {"import": {"read": summary.read, "new": summary.new}, **report}


def outcome_report(frame: "pl.DataFrame", *, most_users: int = 8) -> dict[str, Any]:
    """Counts by outcome (target `failed`), node-hours lost by failed jobs, and the users with most failed jobs."""
    import polars as pl

    ended = frame.filter(pl.col("outcome").is_not_null())
    failed = pl.col("outcome").is_in([str(outcome) for outcome in TARGETS[Target.FAILED]])
    hours = (pl.col("elapsed").fill_null(0) * pl.col("alloc_nodes").fill_null(1)) / 3600
    order = {str(outcome): place for place, outcome in enumerate(Outcome)}
    outcomes = dict(sorted(ended["outcome"].value_counts().iter_rows(), key=lambda pair: order[pair[0]]))
    users = (
        ended.group_by("user")
        .agg(
            jobs=pl.len(),
            failed=failed.sum(),
            mostly=pl.col("outcome").filter(failed).mode().sort().first().fill_null(""),
        )
        .filter(pl.col("failed") > 0)
        .sort("failed", "user", descending=[True, False])
        .head(most_users)
    )
    return {
        "jobs": frame.height,
        "ended": ended.height,
        "outcomes": outcomes,
        "node_hours": round(float(ended.select(hours.sum()).item() or 0), 1),
        "lost_node_hours": round(float(ended.filter(failed).select(hours.sum()).item() or 0), 1),
        "users": users.to_dicts(),
    }
