"""With the setting for it, the verdict on the end of a failed job carries its cause."""

from typing import Any

import polars as pl

from tests.kits.watching import NOON, FakeCluster, ended, watcher
from tocsin.core.verdict import Cause
from tocsin.store.causes import latest_runs
from tocsin.store.database import Store

CAUSE = Cause(kind="disk", title="Disk full or quota exceeded", text="No space left on device")


def test_the_cause_is_in_the_verdict_on_the_end_and_kept(store: Store) -> None:
    asked: list[str] = []

    def causes(jobs: pl.DataFrame) -> list[Cause | None]:
        asked.extend(jobs["outcome"])
        return [CAUSE if outcome == "failed" else None for outcome in jobs["outcome"]]

    cluster = FakeCluster()
    watch = watcher(cluster, store, causes=causes)
    watch.step(NOON)
    who: dict[str, Any] = {"user": "ann", "name": "relax"}
    cluster.accounted = [
        ended(NOON, NOON + 50, "FAILED", **who),
        ended(NOON, NOON + 50, job_id=2, **who),
    ]
    given = {
        verdict.job: verdict.cause for verdict in watch.step(NOON + 100).verdicts if verdict.stage == "end"
    }
    assert given == {f"lab:1@{NOON}": CAUSE, f"lab:2@{NOON}": None}
    assert asked == ["failed", "completed"]
    runs = latest_runs(store, cluster="lab", user="ann", name="relax", known_by=NOON + 1000, most=5)
    assert {run.job: run.cause for run in runs} == given
